"""How alike two sentences are: one encoder for both, a vector of each, a comparison."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.layers.dropouts import Dropout
from models.layers.matching import CrossAttention
from models.layers.pooling import POOLINGS
from models.serialization import layer_config, layer_from_config, register, spec
from models.trained import TrainedModel

COMPARISONS = ("features", "cosine")


@register
class Similarity(TrainedModel):
    """Gives two sentences a similarity.

    A siamese network (Mueller and Thyagarajan 2016): both sentences go through the same encoder
    and the same pooling. ``features`` compares the vectors u and v by a small network on
    [|u - v|; u ⊙ v] and a sigmoid (Tai et al. 2015, "Improved Semantic Representations From
    Tree-Structured LSTMs", §4.2); ``cosine`` takes a · cos(u, v) + b, where a and b, at first
    1 and 0, are all that is learnt. Either way the order of the sentences does not matter.

    Args:
        encoder: a layer from ids ``[batch, length]`` to a memory with ``values`` and ``mask``.
        pooling: a name in ``POOLINGS``, or ``{"type": name, **options}``.
        cross: the arguments of ``CrossAttention``, by which each sentence looks at the other
            before it becomes a vector; None for sentences that know nothing of each other.
        comparison: one of ``COMPARISONS``.
        hidden: the size of the small network's hidden layer.
        dropout: the share dropped of the features and of the hidden layer, in training.

    ``call`` takes a dictionary of ``first`` and ``second``, ids ``[batch, length]`` with padding
    behind, and gives one of ``similarity`` ``[batch]``; ``compute_loss`` also reads ``score``
    ``[batch]``, from 0 to 1.

    Raises:
        ValueError: there is no such pooling or comparison.
    """

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
        if comparison not in COMPARISONS:
            choices = ", ".join(COMPARISONS)
            raise ValueError(f"Unknown comparison {comparison!r}. Choices: {choices}.")
        self.settings: dict[str, Any] = {
            "pooling": pooling,
            "cross": None if cross is None else dict(cross),
            "comparison": comparison,
            "hidden": hidden,
            "dropout": dropout,
        }
        policy = self.dtype_policy
        self.encoder = encoder
        self.pooling = spec("pooling", POOLINGS, pooling, dtype=policy, name="pooling")
        self.cross = None
        if cross is not None:
            self.cross = CrossAttention(**cross, dropout=dropout, dtype=policy, name="cross")
        self.dropout = Dropout(dropout, dtype=policy)
        if comparison == "features":
            self.hidden = keras.layers.Dense(hidden, activation="relu", dtype=policy, name="hidden")
        # The answer itself is float32, whatever the rest is computed in.
        # What points the same way is alike before anything is learnt.
        initializer = "ones" if comparison == "cosine" else "glorot_uniform"
        self.output_layer = keras.layers.Dense(
            1, kernel_initializer=initializer, dtype="float32", name="output"
        )

    @property
    def depth(self) -> int:
        """The depth of a sentence's vector."""
        states = self.encoder.depth if self.cross is None else self.cross.settings["units"]
        return int(self.pooling.out_depth(states))

    @property
    def apart(self) -> bool:
        """Whether a sentence's vector does not depend on the other one."""
        return self.cross is None and not self.pooling.guided

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
        self.built = True

    def call(self, inputs: dict[str, Any], training: bool = False) -> dict[str, Any]:
        found = self.compare(inputs["first"], inputs["second"], training=training)
        return {"similarity": found["similarity"]}

    def compare(self, first: Any, second: Any, training: bool = False) -> dict[str, Any]:
        """The similarity and what it rests on.

        Returns:
            ``similarity`` ``[batch]``, about 0 to 1; ``first_vector`` and ``second_vector``
            ``[batch, depth]``; ``first_weights`` ``[batch, first]`` and ``second_weights``
            ``[batch, second]``, the share of each position in its vector; ``alignment`` ``[batch,
            first, second]`` and ``back`` ``[batch, second, first]``, where each sentence looked in
            the other, None without ``cross``.
        """
        one = self.encoder(first, training=training)
        two = self.encoder(second, training=training)
        states, masks = [one["values"], two["values"]], [one["mask"], two["mask"]]
        looks: list[Any] = [None, None]
        if self.cross is not None:
            same = ops.equal(first[:, :, None], second[:, None, :])
            found = [ops.any(same, axis=2 - i) for i in (0, 1)]
            crossed = [
                self.cross(
                    states[i], masks[i], states[1 - i], masks[1 - i], found[i], training=training
                )
                for i in (0, 1)
            ]
            states, looks = [list(part) for part in zip(*crossed, strict=True)]
        guides: list[Any] = [None, None]
        if self.pooling.guided:
            guides = [_mean(states[1 - i], masks[1 - i]) for i in (0, 1)]
        pooled = [self.pooling(states[i], masks[i], guides[i]) for i in (0, 1)]
        return {
            "similarity": self._similarity(pooled[0][0], pooled[1][0], training),
            "first_vector": pooled[0][0],
            "second_vector": pooled[1][0],
            "first_weights": pooled[0][1],
            "second_weights": pooled[1][1],
            "alignment": looks[0],
            "back": looks[1],
        }

    def embed(self, sentence: Any) -> Any:
        """The vectors ``[batch, depth]`` of sentences ``[batch, length]``.

        Raises:
            ValueError: a sentence has no vector without the other one.
        """
        if not self.apart:
            raise ValueError("Here a sentence's vector depends on the other sentence.")
        memory = self.encoder(sentence)
        return self.pooling(memory["values"], memory["mask"])[0]

    def _similarity(self, one: Any, two: Any, training: bool) -> Any:
        if self.settings["comparison"] == "cosine":
            cosine = ops.sum(_normal(one) * _normal(two), axis=-1, keepdims=True)
            return self.output_layer(cosine)[:, 0]
        features = ops.concatenate([ops.abs(one - two), one * two], axis=-1)
        hidden = self.hidden(self.dropout(features, training=training))
        return ops.sigmoid(self.output_layer(self.dropout(hidden, training=training))[:, 0])

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """The mean squared error of the rows; those without a piece are padding."""
        rows = ops.any(ops.not_equal(x["first"], 0), axis=-1)
        real = ops.cast(rows, "float32")
        count = ops.maximum(ops.sum(real), 1.0)
        errors = ops.square(ops.cast(y_pred["similarity"], "float32") - x["score"])
        mean = ops.sum(errors * real) / count
        self.plain_loss.update_state(mean, ops.sum(real))
        return sum(self.losses, mean)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "encoder": layer_config(self.encoder), **self.settings}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Similarity:
        return cls(**{**config, "encoder": layer_from_config(config["encoder"])})


def _mean(states: Any, mask: Any) -> Any:
    real = ops.cast(mask[..., None], states.dtype)
    return ops.sum(states * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1.0)


def _normal(vector: Any) -> Any:
    """The vector with length 1 in float32; one of zeros stays as it is."""
    vector = ops.cast(vector, "float32")
    squares = ops.sum(ops.square(vector), axis=-1, keepdims=True)
    return vector * ops.rsqrt(ops.maximum(squares, 1e-12))
