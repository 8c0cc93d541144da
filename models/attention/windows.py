"""Attention within windows, without reading or scoring anything outside of them."""

from __future__ import annotations

from keras import ops

from regard.models.attention.alignments.local import LocalAlignment
from regard.models.attention.scores.base import Score, gather_positions
from regard.models.tensors import State, Tensor

_MIN_WINDOWS = 3  # windows that the source must be longer than, plus one per query


def attend_in_windows(
    score: Score, alignment: LocalAlignment, query: Tensor, prepared: State, position: Tensor
) -> tuple[Tensor, Tensor]:
    """Return context and weights as ``Attention.attend``, from ``2 D + 1`` keys per query.

    Luong et al. 2015, §3.2: the cost of a step depends on the window and not on the length of the
    source. Only the returned weights have the length of the source.

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
    # Between p - D and p + D there are at most 2 D + 1 positions for any real p.
    first = ops.cast(ops.floor(centers), "int32") - window
    positions = first + ops.arange(2 * window + 1, dtype="int32")
    is_valid = ops.logical_and(positions >= 0, positions < source)
    offset = ops.cast(positions, "float32") - centers
    positions = ops.clip(positions, 0, source - 1)
    is_valid = ops.logical_and(is_valid, gather_positions(mask, positions))
    scores = score.match_at(query, prepared["keys"], positions)
    weights = alignment.window_weights(scores, is_valid, offset)
    values = gather_positions(prepared["values"], positions)
    context = ops.matmul(weights[..., None, :], values)[..., 0, :]
    # Positions outside of the source have the weight 0 and may be added anywhere.
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
    of 50 to 2,000 positions.
    """
    source, target = ops.shape(prepared["mask"])[1], ops.shape(query)[1]
    return source > (2 * window + 1) * (target + _MIN_WINDOWS)
