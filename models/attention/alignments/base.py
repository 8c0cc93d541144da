"""The interface of alignments, and the masked softmax."""

from typing import Any

import keras
from keras import ops

from regard.models.serialization import ConfiguredLayer
from regard.models.tensors import State, Tensor

MASKED = -1e9  # the score of masked positions: below all others, and finite
# Relative difference of values that are equal up to rounding, of 1 for smaller values.
_ROUNDING = 1e-5


class Alignment(ConfiguredLayer):
    """Base class of the alignments: ``alignment(scores, mask)`` returns weights.

    Shapes: scores and weights ``[batch, target, source]``; mask ``[batch, 1 or target, source]``,
    true at allowed positions, or None. Weights are at least 0 and exactly 0 at masked positions.
    Alignments that predict a position also use the query ``[batch, target, depth]`` and its
    decoder step ``[batch or 1, target]``; those that sample use the result of ``draw_key``.

    An alignment whose weights depend on the decoder step overrides ``needs_position``.

    Attributes:
        choice_name: the name in ``ALIGNMENTS``.
        stochastic: whether weights are sampled in training, so that gradients reach the scores
            only through a reward (``regard.models.reinforce``).
        has_zeros: whether the weights of unmasked positions may be 0.
        needs_sequence: whether source positions must be those of a sequence, and not of an image.
        needs_recurrent_query: whether the query must be the state of a recurrent decoder.
        window: the maximum distance of a nonzero weight from the center of a window
            (``LocalAlignment``); None for no limit.
    """

    choice_name: str = ""
    stochastic: bool = False
    has_zeros: bool = True
    needs_sequence: bool = False
    needs_recurrent_query: bool = False
    window: int | None = None

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True  # the mask is an argument, not Keras's implicit one
        self.input_spec = keras.InputSpec(ndim=3)

    def build(self, query_shape: tuple[int | None, ...]) -> None:
        """Create the weights, if there are any; the query's depth must be known."""
        self.built = True

    def needs_position(self, training: bool = False, random_key: Any = None) -> bool:
        """Return whether the weights of a query depend on its decoder step.

        Args:
            training: whether weights are sampled in training.
            random_key: the key that all steps share, or None for one of this call alone.
        """
        return False

    def resolve_position(
        self, position: Any, target: Any, training: bool = False, random_key: Any = None
    ) -> Tensor:
        """Return the decoder steps of queries, ``[batch or 1, target]``; by default 0, 1, 2, ...

        The step of a single query is not 0 in a loop over steps, where every window of ``local_m``
        would be at the beginning of the source.

        Args:
            position: the steps, or None.
            target: the number of queries.
            training: as in ``needs_position``.
            random_key: as in ``needs_position``.

        Raises:
            ValueError: the position has another rank, or is missing for a single query whose
                weights depend on it.
        """
        if position is not None:
            position = ops.convert_to_tensor(position)
            if len(position.shape) != 2:
                raise ValueError(
                    "position must be [batch or 1, target], but its shape is "
                    f"{tuple(position.shape)}."
                )
            return position
        is_single = isinstance(target, int) and target == 1
        if is_single and self.needs_position(training, random_key):
            name = self.choice_name or type(self).__name__
            raise ValueError(
                f"The weights of the alignment {name!r} depend on the decoder step, "
                "which is unknown for a single query. Pass position=[[t]], where t is 0 in the "
                "first step."
            )
        return ops.arange(target)[None]

    def draw_key(self) -> Any:
        """Return a key for the random numbers of one sequence, or None if none are needed.

        A decoder draws it once outside of its loop: the body of a loop must not change the state
        of a generator.
        """
        return None

    def with_random_key(self, prepared: State) -> State:
        """Add a random key for all samples of a sequence in training to a prepared memory.

        A decoder that attends inside of a loop calls this before the loop. Without it every call
        draws a key of its own, which changes the state of a random generator.
        """
        key = self.draw_key()
        return prepared if key is None else {**prepared, "random_key": key}

    def call(self, scores: Tensor, mask: Tensor = None, **context: Any) -> Tensor:
        """Return the weights.

        Args:
            scores: ``[batch, target, source]``.
            mask: ``[batch, 1 or target, source]``.
            context: ``query``, ``position``, ``training`` and ``random_key``; see the class.
        """
        raise TypeError(f"{type(self).__name__} does not implement call.")

    def align_with_distribution(
        self, scores: Tensor, mask: Tensor = None, **context: Any
    ) -> tuple[Tensor, Tensor]:
        """Return the weights and the distribution from which they were sampled."""
        weights = self(scores, mask=mask, **context)
        return weights, weights


def masked_softmax(scores: Tensor, mask: Tensor = None) -> Tensor:
    """Return a softmax over the last axis in float32; zeros for a completely masked row."""
    scores = ops.cast(scores, "float32")
    if mask is None:
        return ops.softmax(scores, axis=-1)
    # Not minus infinity: a completely masked row must give zeros and not NaN, also in the
    # gradient.
    scores = ops.where(mask, scores, MASKED)
    peak = ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True, initial=MASKED))
    weights = ops.exp(scores - peak) * ops.cast(mask, "float32")
    total = ops.sum(weights, axis=-1, keepdims=True)
    return weights / ops.maximum(total, 1e-9)


def is_largest(values: Tensor, axis: int) -> Tensor:
    """Return where values are the largest along an axis, or equal to it up to rounding.

    Two equal words have equal values, but their rounding depends on the other rows of the batch.
    """
    largest = ops.max(values, axis=axis, keepdims=True, initial=MASKED)
    return values >= largest - _ROUNDING * ops.maximum(ops.abs(largest), 1.0)
