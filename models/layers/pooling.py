"""A sentence's states to one vector, and how much each position had a share in it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import keras
from keras import ops

from models.attention.alignments.base import MASKED, masked_softmax
from models.attention.scores import SCORES
from models.serialization import register, spec


class Pooling(keras.layers.Layer):
    """Base of the poolings: ``pooling(states, mask, guide)`` gives a vector and weights.

    Shapes: states ``[batch, length, depth]``, mask ``[batch, length]``, true at real positions;
    the guide ``[batch, depth]`` is a vector from elsewhere, such as the other sentence, which
    only top-down poolings look at. Gives the vector ``[batch, out_depth]`` and the weights
    ``[batch, length]`` in float32, which are at least 0 and sum to 1, or to 0 where all is
    masked; the vector is zero there.

    Attributes:
        guided: whether it needs the guide.
    """

    guided: bool = False

    def out_depth(self, depth: int) -> int:
        """The depth of the vector for states of a depth."""
        return depth

    def build(self, states_shape: tuple[int | None, ...]) -> None:
        """Makes the weights, for those that have any."""
        self.built = True

    def call(self, states: Any, mask: Any, guide: Any = None) -> tuple[Any, Any]:
        raise TypeError(f"{type(self).__name__} does not say how states become a vector.")


@register
class MeanPooling(Pooling):
    """The mean of the states: every position has the same share."""

    def call(self, states: Any, mask: Any, guide: Any = None) -> tuple[Any, Any]:
        weights = _shares(ops.cast(mask, "float32"))
        return _weighted_sum(weights, states), weights


@register
class MaxPooling(Pooling):
    """The greatest number of each dimension (Conneau et al. 2017, "InferSent", §3.2.3).

    A position's weight is the share of the dimensions that it gave.
    """

    def call(self, states: Any, mask: Any, guide: Any = None) -> tuple[Any, Any]:
        real = mask[..., None]
        low = ops.where(real, ops.cast(states, "float32"), MASKED)
        some = ops.any(mask, axis=-1)[:, None]
        vector = ops.where(some, ops.max(low, axis=1, initial=MASKED), 0.0)
        best = ops.one_hot(ops.argmax(low, axis=1), ops.shape(states)[1], dtype="float32")
        weights = _shares(ops.mean(best, axis=1) * ops.cast(mask, "float32"))
        return ops.cast(vector, states.dtype), weights


@register
class MeanMaxPooling(Pooling):
    """The mean and the greatest numbers, one behind the other (Chen et al. 2017, ESIM, §3.4).

    A position's weight is the mean of its weights in the two.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.parts = [kind(dtype=self.dtype_policy) for kind in (MeanPooling, MaxPooling)]

    def out_depth(self, depth: int) -> int:
        return 2 * depth

    def call(self, states: Any, mask: Any, guide: Any = None) -> tuple[Any, Any]:
        (mean, even), (most, best) = (part(states, mask) for part in self.parts)
        return ops.concatenate([mean, most], axis=-1), (even + best) / 2.0


@register
class GatePooling(Pooling):
    """The mean of the states, each number through a gate of its own: Σ σ(W h) ⊙ h / Σ 1.

    Bottom-up: what passes depends on the position's own state alone. A position's weight is its
    mean gate's share of all.
    """

    def build(self, states_shape: tuple[int | None, ...]) -> None:
        depth = states_shape[-1]
        self.gate = keras.layers.Dense(
            depth, activation="sigmoid", dtype=self.dtype_policy, name="gate"
        )
        self.gate.build((None, None, depth))
        self.built = True

    def call(self, states: Any, mask: Any, guide: Any = None) -> tuple[Any, Any]:
        real = ops.cast(mask, "float32")
        gates = self.gate(states)
        vector = _weighted_sum(_shares(real), gates * states)
        return vector, _shares(ops.mean(ops.cast(gates, "float32"), axis=-1) * real)


@register
class SelfAttentionPooling(Pooling):
    """Several weighted sums side by side, each looking for something of its own.

    Lin et al. 2017, "A Structured Self-Attentive Sentence Embedding", §2: A = softmax(W2
    tanh(W1 Hᵀ)), the vector is the rows of A H one after the other. Bottom-up: nothing but the
    sentence itself says where to look. A position's weight is its mean over the hops.

    Args:
        units: the size of the hidden layer.
        hops: the number of sums.
        penalty: the weight of ‖A Aᵀ - I‖², which keeps the hops apart (§2.1).

    Raises:
        ValueError: there is no hop, or no unit.
    """

    def __init__(self, units: int = 64, hops: int = 2, penalty: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        if units < 1 or hops < 1:
            raise ValueError(f"There must be a unit and a hop, not {units} and {hops}.")
        self.settings: dict[str, Any] = {"units": units, "hops": hops, "penalty": penalty}

    def out_depth(self, depth: int) -> int:
        return depth * int(self.settings["hops"])

    def build(self, states_shape: tuple[int | None, ...]) -> None:
        policy, units = self.dtype_policy, self.settings["units"]
        self.hidden = keras.layers.Dense(
            units, activation="tanh", use_bias=False, dtype=policy, name="hidden"
        )
        self.scores = keras.layers.Dense(
            self.settings["hops"], use_bias=False, dtype=policy, name="scores"
        )
        self.hidden.build((None, None, states_shape[-1]))
        self.scores.build((None, None, units))
        self.built = True

    def call(self, states: Any, mask: Any, guide: Any = None) -> tuple[Any, Any]:
        scores = ops.transpose(self.scores(self.hidden(states)), (0, 2, 1))
        looks = masked_softmax(scores, mask[:, None, :])  # [batch, hops, length]
        if self.settings["penalty"]:
            overlap = ops.matmul(looks, ops.transpose(looks, (0, 2, 1)))
            apart = overlap - ops.eye(self.settings["hops"])
            self.add_loss(
                self.settings["penalty"] * ops.mean(ops.sum(ops.square(apart), axis=(1, 2)))
            )
        sums = ops.matmul(ops.cast(looks, states.dtype), states)
        vector = ops.reshape(sums, (-1, self.out_depth(states.shape[-1])))
        return vector, ops.mean(looks, axis=1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


@register
class TopDownPooling(Pooling):
    """A weighted sum whose weights come from how well each state matches the guide.

    Tan et al. 2016, "Improved Representation Learning for Question Answer Matching", §3.3: the
    other sentence's vector says where to look. Top-down, in contrast to the poolings above.

    Args:
        score: a name in ``SCORES``, or ``{"type": name, **options}``.

    Raises:
        ValueError: there is no such score, it refuses an option, or there is no guide.
    """

    guided = True

    def __init__(self, score: str | dict[str, Any] = "additive", **kwargs: Any):
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {"score": score}
        self.score = spec("score", SCORES, score, dtype=self.dtype_policy, name="score")

    def build(self, states_shape: tuple[int | None, ...]) -> None:
        self.score.build((None, None, states_shape[-1]), states_shape)
        self.built = True

    def call(self, states: Any, mask: Any, guide: Any = None) -> tuple[Any, Any]:
        if guide is None:
            raise ValueError("Top-down pooling needs a guide.")
        reached = self.score.reach(mask)
        scores = self.score.match(guide[:, None, :], self.score.prepare(states))
        weights = masked_softmax(scores, reached[:, None, :])[:, 0]
        return _weighted_sum(weights, states), weights

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


POOLINGS: Mapping[str, type[Pooling]] = MappingProxyType(
    {
        "mean": MeanPooling,
        "max": MaxPooling,
        "mean_max": MeanMaxPooling,
        "gate": GatePooling,
        "self_attention": SelfAttentionPooling,
        "top_down": TopDownPooling,
    }
)


def _shares(weights: Any) -> Any:
    """Weights ``[batch, length]`` of at least 0 that sum to 1, or to 0 where all are."""
    return weights / ops.maximum(ops.sum(weights, axis=-1, keepdims=True), 1e-9)


def _weighted_sum(weights: Any, states: Any) -> Any:
    """``[batch, length]`` and ``[batch, length, depth]`` → ``[batch, depth]``."""
    return ops.einsum("bl,bld->bd", ops.cast(weights, states.dtype), states)
