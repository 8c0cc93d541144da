"""Writing pieces of the source beside those of the vocabulary."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.serialization import register

_LEAST = 1e-20  # the least probability whose logarithm is taken


@register
class Copying(keras.layers.Layer):
    """Mixes what a decoder would write with copies of what it looks at.

    See et al. 2017, "Get To The Point: Summarization with Pointer-Generator Networks", §2.2
    (eq. 8-9): p_gen = σ(w · x + b), P(w) = p_gen P_vocab(w) + (1 - p_gen) Σ_{i: x_i = w} a_i. The
    source is in the vocabulary's own pieces here, so a word that the vocabulary has not is copied
    piece by piece, and there is no extended vocabulary.

    Shapes: logits ``[batch, target, vocabulary]``, weights ``[batch, target, source]``, ids of the
    source ``[batch, source]``, features ``[batch, target, depth]`` that decide about p_gen →
    log P, ``[batch, target, vocabulary]`` in float32, which are logits too: they sum to 1.
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
        self.built = True

    def call(self, logits: Any, weights: Any, ids: Any, features: Any) -> Any:
        generate = ops.sigmoid(ops.cast(self.gate(features), "float32"))
        written = ops.softmax(ops.cast(logits, "float32"), axis=-1)
        copied = self.distribution(weights, ids, ops.shape(logits)[-1])
        # Where nothing is looked at nothing can be copied.
        some = ops.sum(copied, axis=-1, keepdims=True)
        generate = ops.where(some > 0, generate, 1.0)
        mixed = generate * written + (1.0 - generate) * copied / ops.maximum(some, _LEAST)
        return ops.log(ops.maximum(mixed, _LEAST))

    @staticmethod
    def distribution(weights: Any, ids: Any, vocabulary: int) -> Any:
        """The weights of the source's positions as weights of its pieces, over the vocabulary."""
        batch, target, source = ops.shape(weights)
        rows = ops.repeat(ops.arange(batch * target, dtype="int32"), source)
        pieces = ops.repeat(ops.cast(ids, "int32")[:, None], target, axis=1)
        places = ops.stack([rows, ops.reshape(pieces, (-1,))], axis=-1)
        values = ops.reshape(ops.cast(weights, "float32"), (-1,))
        summed = ops.scatter(places, values, (batch * target, vocabulary))
        return ops.reshape(summed, (batch, target, vocabulary))
