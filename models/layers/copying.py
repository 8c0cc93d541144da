"""Copying of source tokens."""

from typing import Any

import keras
from keras import ops

from regard.models.serialization import register
from regard.models.tensors import Tensor

_MIN_PROBABILITY = 1e-20  # avoids the logarithm of 0


@register
class Copying(keras.layers.Layer):
    """Mix the decoder's distribution with copies of source tokens.

    See et al. 2017, "Get To The Point: Summarization with Pointer-Generator Networks", §2.2
    (eq. 8-9): p_gen = σ(w · x + b), P(w) = p_gen P_vocab(w) + (1 - p_gen) Σ_{i: x_i = w} a_i. The
    source has tokens of the same vocabulary. A token that the vocabulary lacks has a temporary id
    of its row from ``vocabulary`` on, and can only be copied (the extended vocabulary of §2.2);
    there are at most as many as source positions.

    Shapes: logits ``[batch, target, vocabulary]``, weights ``[batch, target, source]``, source ids
    ``[batch, source]``, features x ``[batch, target, depth]`` → log P, ``[batch, target,
    vocabulary + source]`` in float32, which can be used as logits.
    """

    def build(
        self,
        logits_shape: Any,
        weights_shape: Any,
        ids_shape: Any,
        features_shape: tuple[int | None, ...],
    ) -> None:
        self.gate = keras.layers.Dense(1, dtype=self.dtype_policy, name="gate")
        self.gate.build((None, None, features_shape[-1]))

    def call(self, logits: Tensor, weights: Tensor, ids: Tensor, features: Tensor) -> Tensor:
        generate = ops.sigmoid(ops.cast(self.gate(features), "float32"))
        generated = ops.softmax(ops.cast(logits, "float32"), axis=-1)
        unknown = ops.zeros_like(ops.cast(weights, "float32"))
        generated = ops.concatenate([generated, unknown], axis=-1)
        copied = self.distribution(weights, ids, ops.shape(generated)[-1])
        # Without attention nothing can be copied.
        total = ops.sum(copied, axis=-1, keepdims=True)
        generate = ops.where(total > 0, generate, 1.0)
        copies = (1.0 - generate) * copied / ops.maximum(total, _MIN_PROBABILITY)
        mixed = generate * generated + copies
        return ops.log(ops.maximum(mixed, _MIN_PROBABILITY))

    @staticmethod
    def distribution(weights: Tensor, ids: Tensor, vocabulary: int) -> Tensor:
        """Return the weights of source positions summed per token, over the vocabulary."""
        batch, target, source = ops.shape(weights)
        rows = ops.repeat(ops.arange(batch * target, dtype="int32"), source)
        tokens = ops.repeat(ops.cast(ids, "int32")[:, None], target, axis=1)
        indices = ops.stack([rows, ops.reshape(tokens, (-1,))], axis=-1)
        values = ops.reshape(ops.cast(weights, "float32"), (-1,))
        summed = ops.scatter(indices, values, (batch * target, vocabulary))
        return ops.reshape(summed, (batch, target, vocabulary))
