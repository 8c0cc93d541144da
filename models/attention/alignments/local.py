"""Local attention: alignments within a window around a given or predicted position."""

from typing import Any

from keras import ops

from regard.core.bounds import Positive, Size
from regard.models.attention.alignments.base import Alignment, masked_softmax
from regard.models.attention.scores.base import Score, gather_positions
from regard.models.serialization import checked_arguments, choice
from regard.models.tensors import State, Tensor


class LocalAlignment(Alignment):
    """Base class of local attention: the positions s with \\|s - p\\| ≤ D around a center p.

    D is ``window``.

    Args:
        window: Number of positions on each side of the center.
    """

    needs_sequence = True
    window: int

    def __init__(self, window: Positive = 10, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = checked_arguments(locals())
        self.window = window

    def centers(self, source_lengths: Any, query: Tensor, position: Tensor) -> Tensor:
        """Return the centers of the windows, ``[batch, target, 1]``, float32.

        Args:
            source_lengths: the result of the function ``source_lengths``.
            query: ``[batch, target, depth]``.
            position: ``[batch or 1, target]``.
        """
        raise TypeError(f"{type(self).__name__} does not implement centers.")

    def window_weights(self, scores: Tensor, mask: Tensor, offset: Tensor) -> Tensor:
        """Return the weights of positions that include all positions of the windows.

        Args:
            scores: ``[batch, target, positions]``.
            mask: ``[batch, 1 or target, positions]``, or None.
            offset: the distance of each position from the center, of the scores' shape.
        """
        in_window = ops.abs(offset) <= self.window
        if mask is not None:
            in_window = ops.logical_and(in_window, mask)
        return ops.cast(
            self._gaussian_weight(masked_softmax(scores, in_window), offset), self.compute_dtype
        )

    def _gaussian_weight(self, weights: Tensor, offset: Tensor) -> Tensor:
        """Return the weights scaled by the distance from the center; by default unchanged."""
        return weights

    def call(
        self,
        scores: Tensor,
        mask: Tensor = None,
        query: Tensor = None,
        position: Tensor = None,
        **context: Any,
    ) -> Tensor:
        position = self.resolve_position(position, ops.shape(scores)[-2])
        steps = ops.cast(ops.arange(ops.shape(scores)[-1]), "float32")
        offset = steps - self.centers(source_lengths(scores, mask), query, position)
        return self.window_weights(scores, mask, offset)


@choice("local_m")
class LocalMAlignment(LocalAlignment):
    """A window around the position of the step (Luong 2015, local-m).

    Luong et al. 2015, §3.2: a softmax in the window. Steps beyond the end of the source use its
    last position, so that a window is never empty. Arguments as in ``LocalAlignment``.
    """

    def needs_position(self, training: bool = False, random_key: Any = None) -> bool:
        return True

    def centers(self, source_lengths: Any, query: Tensor, position: Tensor) -> Tensor:
        last = ops.maximum(source_lengths - 1.0, 0.0)
        return ops.minimum(ops.cast(position, "float32")[..., None], last)


@choice("local_p")
class LocalPAlignment(LocalAlignment):
    """A window around a predicted position, weighted by a Gaussian (Luong 2015, local-p).

    Luong et al. 2015, §3.2, eqs. 9 and 10: p = S · sigmoid(v · tanh(W q)) with S the true length
    of the source, and align(q, k) · exp(-(s - p)² / 2σ²) with σ = D / 2. Positions start at 0.
    As in the paper, the Gaussian makes the sum of the weights less than 1.

    Args:
        window: Number of positions on each side of the center.
        units: the width of the predicting layer; None for the query's depth.
    """

    needs_recurrent_query = True

    def __init__(self, window: Positive = 10, *, units: Size | None = None, **kwargs: Any):
        super().__init__(window, **kwargs)
        self.settings = checked_arguments(locals())
        self.units = units

    def build(self, query_shape: tuple[int | None, ...]) -> None:
        width = self.units or query_shape[-1]
        self.kernel = self.add_weight(
            name="kernel", shape=(query_shape[-1], width), initializer="glorot_uniform"
        )
        self.vector = self.add_weight(name="vector", shape=(width, 1), initializer="glorot_uniform")
        super().build(query_shape)

    def centers(self, source_lengths: Any, query: Tensor, position: Tensor) -> Tensor:
        hidden = ops.tanh(ops.matmul(query, ops.cast(self.kernel, self.compute_dtype)))
        predicted = ops.matmul(hidden, ops.cast(self.vector, self.compute_dtype))
        return source_lengths * ops.sigmoid(ops.cast(predicted, "float32"))

    def _gaussian_weight(self, weights: Tensor, offset: Tensor) -> Tensor:
        return weights * ops.exp(-2.0 * ops.square(offset / self.window))  # 1 / 2σ² = 2 / D²


def source_lengths(scores: Tensor, mask: Tensor = None) -> Tensor:
    """Return the lengths of the source up to the last unmasked position.

    Returns:
        ``[batch, 1 or target, 1]``, float32.
    """
    count = ops.cast(ops.arange(ops.shape(scores)[-1]) + 1, "float32")
    if mask is None:
        return ops.max(count, initial=0.0)[None, None, None]
    return ops.max(ops.cast(mask, "float32") * count, axis=-1, keepdims=True, initial=0.0)


_MIN_WINDOWS = 3  # windows that the source must be longer than, plus one per query


def attend_in_windows(
    score: Score, alignment: LocalAlignment, query: Tensor, prepared: State, position: Tensor
) -> tuple[Tensor, Tensor]:
    """Return context and weights as ``Attention.call``, from ``2 D + 1`` keys per query.

    The plain way scores the whole source, and ``LocalAlignment.call`` sets the weights outside of
    the window to 0. The keys there change nothing, so here they are not read: the score, the
    weights and the sum are computed from copies of the keys and values of each window, and the
    weights are scattered to the length of the source. `tests/models/attention/test_windows.py`
    compares both ways with the formula, and their gradients.

    Luong et al. 2015, §3.2: the cost of a step depends on the window and not on the length of the
    source. With a source of 2,000 positions, a step of greedy search takes 0.52 ms, and 1.58 ms
    with soft attention, which reads all of it (`benchmarks/long_inputs.md`).

    Args:
        score: the score of query and keys.
        alignment: computes the centers of the windows and the weights within them.
        query: ``[batch, target, query_depth]``.
        prepared: the result of ``Attention.prepare``.
        position: the decoder step of each query, ``[batch or 1, target]``.
    """
    mask = prepared["mask"]
    batch, source = ops.shape(mask)
    target, window = ops.shape(query)[1], alignment.window
    centers = alignment.centers(prepared["lengths"], query, position)
    # The window: between p - D and p + D there are at most 2 D + 1 positions for any real p.
    first = ops.cast(ops.floor(centers), "int32") - window
    positions = first + ops.arange(2 * window + 1, dtype="int32")
    is_valid = ops.logical_and(positions >= 0, positions < source)
    offset = ops.cast(positions, "float32") - centers
    # Weights and context of the window, [batch, target, 2 D + 1].
    positions = ops.clip(positions, 0, source - 1)
    is_valid = ops.logical_and(is_valid, gather_positions(mask, positions))
    scores = score.match_at(query, prepared["keys"], positions)
    weights = alignment.window_weights(scores, is_valid, offset)
    values = gather_positions(prepared["values"], positions)
    context = ops.matmul(weights[..., None, :], values)[..., 0, :]
    # The weights as a row of the source. Positions outside of it have the weight 0 and may be
    # added anywhere.
    rows = ops.reshape(ops.arange(batch * target, dtype="int32"), (batch, target, 1)) * source
    full_weights = ops.scatter(
        ops.reshape(rows + positions, (-1, 1)),
        ops.reshape(weights, (-1,)),
        (batch * target * source,),
    )
    return context, ops.reshape(full_weights, (batch, target, source))


def should_use_windows(window: int, query: Tensor, prepared: State) -> bool | Tensor:
    """Return whether windows cost less than the whole source; a tensor if sizes are dynamic.

    Windows copy keys for every query, while one matrix product scores all keys for all queries of
    a row, so the source must be as long as several windows. The threshold was measured for sources
    of 50 to 2,000 positions. A mask per query excludes them.
    """
    if len(prepared["mask"].shape) == 3:
        return False
    source, target = ops.shape(prepared["mask"])[1], ops.shape(query)[1]
    if not all(isinstance(size, int) or ops.is_tensor(size) for size in (source, target)):
        return False  # JAX cannot compare the unknown sizes of a functional model
    return source > (2 * window + 1) * (target + _MIN_WINDOWS)
