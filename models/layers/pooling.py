"""Pooling of a sentence's states to one vector, with the weight of each position."""

from typing import TYPE_CHECKING, Any

from keras import ops

from regard.core.bounds import NonNegative, Positive, Size
from regard.models.attention.alignments.base import MASKED, is_largest, masked_softmax
from regard.models.attention.scores import SCORES
from regard.models.layer_sources import classes_of_module
from regard.models.serialization import (
    ConfiguredLayer,
    checked_arguments,
    choice,
    constructor_arguments,
    spec,
)
from regard.models.tensors import Tensor

if TYPE_CHECKING:
    from regard.models.settings.attention import ScoreOption


class Pooling(ConfiguredLayer):
    """Base class: ``pooling(states, mask, guide)`` returns a vector and weights.

    Shapes: states ``[batch, length, depth]``, mask ``[batch, length]``, true at valid positions,
    by default Keras's mask of the states or else all positions;
    guide ``[batch, depth]``, a vector such as that of the other sentence, which only top-down
    poolings use. Returns the vector ``[batch, out_depth]`` and the weights ``[batch, length]`` in
    float32, which sum to 1. Both are zero for a row that is masked completely.

    Attributes:
        needs_guide: whether the guide is used.
    """

    needs_guide: bool = False

    def out_depth(self, depth: int) -> int:
        """Return the depth of the vector for the depth of the states."""
        return depth

    def build(self, states_shape: tuple[int | None, ...]) -> None:
        """Create the weights, if there are any."""
        self.built = True

    def compute_mask(self, states: Tensor, previous_mask: Tensor) -> None:
        """Return None: a vector has no positions."""

    def call(
        self, states: Tensor, mask: Tensor = None, guide: Tensor = None, states_mask: Tensor = None
    ) -> tuple[Tensor, Tensor]:
        """Return the vector and the weights.

        Args:
            states: ``[batch, length, depth]``.
            mask: ``[batch, length]``.
            guide: ``[batch, depth]``.
            states_mask: Keras's mask of the states in a call with a guide.
        """
        if len(states.shape) != 3:
            shape = tuple(states.shape)
            raise ValueError(f"states must be [batch, length, depth], but their shape is {shape}.")
        mask = states_mask if mask is None else mask
        if mask is None:
            mask = ops.ones(ops.shape(states)[:2], dtype="bool")
        return self.pool(states, mask, guide)

    def pool(self, states: Tensor, mask: Tensor, guide: Tensor = None) -> tuple[Tensor, Tensor]:
        """Return the vector and the weights for a mask."""
        raise TypeError(f"{type(self).__name__} does not implement pool.")


@choice("mean")
class MeanPooling(Pooling):
    """Mean of the states.

    All positions have the same weight.
    """

    def pool(self, states: Tensor, mask: Tensor, guide: Tensor = None) -> tuple[Tensor, Tensor]:
        weights = _normalize(ops.cast(mask, "float32"))
        return _weighted_sum(weights, states), weights


@choice("max")
class MaxPooling(Pooling):
    """Maximum of each dimension (Conneau 2017).

    Conneau et al. 2017, "Supervised Learning of Universal Sentence Representations from Natural
    Language Inference Data" (InferSent), §3.2.2. A position's weight is the share of dimensions in
    which it is the maximum. Positions whose values are equal up to rounding, such as those of a
    repeated word, share a dimension: rounding depends on the other rows of a batch.
    """

    def pool(self, states: Tensor, mask: Tensor, guide: Tensor = None) -> tuple[Tensor, Tensor]:
        masked = ops.where(mask[..., None], ops.cast(states, "float32"), MASKED)
        has_valid = ops.any(mask, axis=-1)[:, None]
        vector = ops.where(has_valid, ops.max(masked, axis=1, initial=MASKED), 0.0)
        is_best = ops.logical_and(is_largest(masked, axis=1), mask[..., None])
        is_best = ops.cast(is_best, "float32")
        part = is_best / ops.maximum(ops.sum(is_best, axis=1, keepdims=True), 1.0)
        return ops.cast(vector, states.dtype), _normalize(ops.mean(part, axis=-1))


@choice("mean_max")
class MeanMaxPooling(Pooling):
    """Mean and maximum, concatenated (Chen 2017).

    Chen et al. 2017, "Enhanced LSTM for Natural Language Inference" (ESIM), §3.3. A position's
    weight is the mean of its two weights.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.poolings = [pooling(dtype=self.dtype_policy) for pooling in (MeanPooling, MaxPooling)]

    def out_depth(self, depth: int) -> int:
        return 2 * depth

    def pool(self, states: Tensor, mask: Tensor, guide: Tensor = None) -> tuple[Tensor, Tensor]:
        (mean, mean_weights), (maximum, max_weights) = (
            pooling(states, mask) for pooling in self.poolings
        )
        vector = ops.concatenate([mean, maximum], axis=-1)
        return vector, (mean_weights + max_weights) / 2.0


@choice("gate")
class GatePooling(Pooling):
    """Mean of gated states (bottom-up attention).

    Σ σ(W h) ⊙ h / Σ 1. Bottom-up: a gate depends only on the state of its position. A position's
    weight is its mean gate, normalised over the positions.
    """

    def build(self, states_shape: tuple[int | None, ...]) -> None:
        depth = int(states_shape[-1] or 0)
        self.gate = self.create_dense("gate", depth, depth, activation="sigmoid")

    def pool(self, states: Tensor, mask: Tensor, guide: Tensor = None) -> tuple[Tensor, Tensor]:
        valid = ops.cast(mask, "float32")
        gates = self.gate(states)
        vector = _weighted_sum(_normalize(valid), gates * states)
        return vector, _normalize(ops.mean(ops.cast(gates, "float32"), axis=-1) * valid)


@choice("self_attention")
class SelfAttentionPooling(Pooling):
    """Self-attentive pooling with several hops (bottom-up attention, Lin 2017).

    Lin et al. 2017, "A Structured Self-Attentive Sentence Embedding", §2: A = softmax(W2
    tanh(W1 Hᵀ)), and the vector is the concatenation of the rows of A H. Bottom-up: the weights
    depend only on the sentence. A position's weight is its mean over the hops. The penalty is the
    mean of ‖A Aᵀ - I‖² over the rows that are not masked completely (§2.2).

    Args:
        units: Width of the hidden layer.
        hops: Number of hops.
        penalty: Weight of the penalty on similar hops.
    """

    def __init__(
        self, units: Size = 64, hops: Positive = 2, penalty: NonNegative = 0.0, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.settings = checked_arguments(locals())

    def out_depth(self, depth: int) -> int:
        return depth * int(self.settings["hops"])

    def build(self, states_shape: tuple[int | None, ...]) -> None:
        units, hops = self.settings["units"], self.settings["hops"]
        self.hidden = self.create_dense(
            "hidden", states_shape[-1], units, activation="tanh", use_bias=False
        )
        self.scores = self.create_dense("scores", units, hops, use_bias=False)

    def pool(self, states: Tensor, mask: Tensor, guide: Tensor = None) -> tuple[Tensor, Tensor]:
        scores = ops.transpose(self.scores(self.hidden(states)), (0, 2, 1))
        weights = masked_softmax(scores, mask[:, None, :])  # [batch, hops, length]
        if self.settings["penalty"]:
            overlap = ops.matmul(weights, ops.transpose(weights, (0, 2, 1)))
            deviation = overlap - ops.eye(self.settings["hops"])
            losses = ops.sum(ops.square(deviation), axis=(1, 2))
            # The number of empty rows, which fill a batch, depends on the number of devices.
            has_valid = ops.cast(ops.any(mask, axis=-1), losses.dtype)
            mean = ops.sum(losses * has_valid) / ops.maximum(ops.sum(has_valid), 1.0)
            self.add_loss(self.settings["penalty"] * mean)
        sums = ops.matmul(ops.cast(weights, states.dtype), states)
        vector = ops.reshape(sums, (-1, self.out_depth(states.shape[-1])))
        return vector, ops.mean(weights, axis=1)


@choice("top_down")
class TopDownPooling(Pooling):
    """Attention from the other sentence (top-down attention, Tan 2016).

    Tan et al. 2016, "Improved Representation Learning for Question Answer Matching", §3.3: the
    vector of the other sentence is the query. Top-down, in contrast to the poolings above.

    Args:
        score: Score of a state and the other sentence.

    Raises:
        ValueError: in ``call``, the guide is missing.
    """

    needs_guide = True

    def __init__(self, score: "ScoreOption" = "general", **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        self.score = spec("score", SCORES, score, dtype=self.dtype_policy, name="score")

    def build(self, states_shape: tuple[int | None, ...]) -> None:
        self.score.build((None, None, states_shape[-1]), states_shape)

    def pool(self, states: Tensor, mask: Tensor, guide: Tensor = None) -> tuple[Tensor, Tensor]:
        if guide is None:
            raise ValueError("Top-down pooling needs a guide.")
        valid = self.score.valid_mask(mask)
        scores = self.score.match(guide[:, None, :], self.score.prepare(states))
        weights = masked_softmax(scores, valid[:, None, :])[:, 0]
        return _weighted_sum(weights, states), weights


def _normalize(weights: Tensor) -> Tensor:
    """Return weights ``[batch, length]`` divided by their sum; zeros stay zeros."""
    return weights / ops.maximum(ops.sum(weights, axis=-1, keepdims=True), 1e-9)


def _weighted_sum(weights: Tensor, states: Tensor) -> Tensor:
    """Return the sum ``[batch, depth]`` of states ``[batch, length, depth]``."""
    return ops.einsum("bl,bld->bd", ops.cast(weights, states.dtype), states)


POOLINGS: dict[str, type[Pooling]] = classes_of_module(__file__, __name__)
