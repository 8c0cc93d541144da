"""Sentence similarity: one encoder, one vector per sentence, one comparison."""

from typing import Any

import keras
from keras import ops

from regard.models.layers.dropout import Dropout
from regard.models.layers.matching import CrossAttention
from regard.models.layers.pooling import POOLINGS
from regard.models.serialization import check_name, constructor_arguments, register, spec
from regard.models.tensors import Tensor
from regard.models.trainable_model import TrainableModel

COMPARISONS = ("features", "cosine")


@register
class Similarity(TrainableModel):
    """Compute the similarity of two sentences.

    A siamese network (Mueller and Thyagarajan 2016): both sentences use the same encoder and the
    same pooling. ``features`` compares the vectors u and v by a small network on [|u - v|; u ⊙ v]
    and a sigmoid (Tai et al. 2015, "Improved Semantic Representations From Tree-Structured LSTMs",
    §4.2); ``cosine`` computes a · cos(u, v) + b with learned a and b, initially 1 and 0. Both are
    symmetric.

    Args:
        encoder: a layer from ids ``[batch, length]`` to a memory with ``values`` and ``mask``.
        pooling: a name in ``POOLINGS``, or ``{"type": name, **options}``.
        cross: the arguments of ``CrossAttention``, with which each sentence attends to the other
            before pooling; None for independent sentences.
        comparison: one of ``COMPARISONS``.
        hidden: the size of the small network's hidden layer.
        dropout: the dropout rate of the features and of the hidden layer.

    ``call`` takes a dictionary of ``first`` and ``second``, padded ids ``[batch, length]``, and
    returns a dictionary of ``similarity`` ``[batch]``; ``batch_loss`` also reads ``score``
    ``[batch]``, from 0 to 1.

    Raises:
        ValueError: the pooling or comparison is unknown.
    """

    parts = ("encoder",)
    unit = "rows"

    def __init__(
        self,
        encoder: keras.layers.Layer,
        pooling: str | dict[str, Any] = "mean",
        cross: dict[str, Any] | None = None,
        comparison: str = "features",
        hidden: int = 64,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        cross = None if cross is None else dict(cross)
        self.settings = constructor_arguments(locals(), exclude=self.parts)
        check_name("comparison", COMPARISONS, comparison)
        policy = self.dtype_policy
        self.encoder = encoder
        self.pooling = spec("pooling", POOLINGS, pooling, dtype=policy, name="pooling")
        self.cross = None
        if cross is not None:
            self.cross = CrossAttention(**cross, dropout=dropout, dtype=policy, name="cross")
        self.dropout = Dropout(dropout, dtype=policy)
        if comparison == "features":
            self.hidden = keras.layers.Dense(hidden, activation="relu", dtype=policy, name="hidden")
        # The output is always float32. An untrained cosine returns the plain cosine.
        initializer = "ones" if comparison == "cosine" else "glorot_uniform"
        self.output_layer = keras.layers.Dense(
            1, kernel_initializer=initializer, dtype="float32", name="output"
        )

    @property
    def depth(self) -> int:
        """The depth of a sentence vector."""
        states = self.encoder.depth if self.cross is None else self.cross.settings["units"]
        return int(self.pooling.out_depth(states))

    @property
    def encodes_independently(self) -> bool:
        """Whether a sentence vector does not depend on the other sentence."""
        return self.cross is None and not self.pooling.needs_guide

    def build(self, inputs_shape: Any = None) -> None:
        states = self.encoder.depth
        if not self.encoder.built:
            self.encoder.build()
        if self.cross is not None:
            self.cross.build((None, None, states))
            states = self.cross.settings["units"]
        self.pooling.build((None, None, states))
        features = 1
        if self.settings["comparison"] == "features":
            self.hidden.build((None, 2 * self.depth))
            features = self.settings["hidden"]
        self.output_layer.build((None, features))

    def call(self, inputs: dict[str, Tensor], training: bool = False) -> dict[str, Tensor]:
        outputs = self.compare(inputs["first"], inputs["second"], training=training)
        return {"similarity": outputs["similarity"]}

    def compare(self, first: Tensor, second: Tensor, training: bool = False) -> dict[str, Tensor]:
        """Return the similarity with vectors and attention weights.

        Returns:
            ``similarity`` ``[batch]``, about 0 to 1; ``first_vector`` and ``second_vector``
            ``[batch, depth]``; ``first_weights`` ``[batch, first]`` and ``second_weights``
            ``[batch, second]``, the pooling weight of each position; ``alignment`` ``[batch,
            first, second]`` and ``reverse_alignment`` ``[batch, second, first]``, the attention to
            the other sentence, None without ``cross``.
        """
        memories = [self.encoder(ids, training=training) for ids in (first, second)]
        states = [memory["values"] for memory in memories]
        masks = [memory["mask"] for memory in memories]
        alignments: list[Tensor] = [None, None]
        if self.cross is not None:
            is_equal = ops.equal(first[:, :, None], second[:, None, :])
            matches = [ops.any(is_equal, axis=2 - i) for i in (0, 1)]
            crossed = [
                self.cross(
                    states[i], masks[i], states[1 - i], masks[1 - i], matches[i], training=training
                )
                for i in (0, 1)
            ]
            states = [outputs[0] for outputs in crossed]
            alignments = [outputs[1] for outputs in crossed]
        guides: list[Tensor] = [None, None]
        if self.pooling.needs_guide:
            guides = [_mean(states[1 - i], masks[1 - i]) for i in (0, 1)]
        pooled = [self.pooling(states[i], masks[i], guides[i]) for i in (0, 1)]
        return {
            "similarity": self._similarity(pooled[0][0], pooled[1][0], training),
            "first_vector": pooled[0][0],
            "second_vector": pooled[1][0],
            "first_weights": pooled[0][1],
            "second_weights": pooled[1][1],
            "alignment": alignments[0],
            "reverse_alignment": alignments[1],
        }

    def embed(self, sentence: Tensor) -> Any:
        """Return the vectors ``[batch, depth]`` of sentences ``[batch, length]``.

        Raises:
            ValueError: a sentence vector depends on the other sentence.
        """
        if not self.encodes_independently:
            raise ValueError(
                "This model has no single-sentence vectors: they depend on the other sentence."
            )
        memory = self.encoder(sentence)
        return self.pooling(memory["values"], memory["mask"])[0]

    def _similarity(self, first: Tensor, second: Tensor, training: bool) -> Any:
        if self.settings["comparison"] == "cosine":
            cosine = ops.sum(_normalize(first) * _normalize(second), axis=-1, keepdims=True)
            return self.output_layer(cosine)[:, 0]
        features = ops.concatenate([ops.abs(first - second), first * second], axis=-1)
        hidden = self.hidden(self.dropout(features, training=training))
        return ops.sigmoid(self.output_layer(self.dropout(hidden, training=training))[:, 0])

    def batch_loss(self, inputs: Any, outputs: Any, training: bool) -> Any:
        """Return the mean squared error of the rows; rows without tokens are padding."""
        errors = ops.square(ops.cast(outputs["similarity"], "float32") - inputs["score"])
        return self.mean_over_rows(errors, inputs["first"])


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    mask = ops.cast(mask[..., None], states.dtype)
    return ops.sum(states * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1.0)


def _normalize(vector: Tensor) -> Any:
    """Return the vector with length 1 in float32; a zero vector is unchanged."""
    vector = ops.cast(vector, "float32")
    squares = ops.sum(ops.square(vector), axis=-1, keepdims=True)
    return vector * ops.rsqrt(ops.maximum(squares, 1e-12))
