"""Looking through windows: what stands outside of them is neither read nor scored."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.attention.alignments.local import LocalAlignment
from models.attention.scores.base import Score, rows_at

_AT_LEAST = 3  # windows, beside one for each query


def look(
    score: Score, alignment: LocalAlignment, query: Any, prepared: dict[str, Any], position: Any
) -> tuple[Any, Any]:
    """Context and weights as ``Attention.attend`` gives them, from ``2 D + 1`` keys a query.

    Luong et al. 2015, §3.2: a step costs what the window costs, however long the source is. Only
    the weights that are handed out have the source's length, zeros outside of the window.

    Args:
        score: how well a query matches a key.
        alignment: where the windows stand, and what the scores in them become.
        query: ``[batch, target, query_depth]``.
        prepared: what ``Attention.prepare`` gave.
        position: which step of the decoder each query is, ``[batch or 1, target]``.
    """
    mask = prepared["mask"]
    batch, source = ops.shape(mask)
    target, reach = ops.shape(query)[1], alignment.window
    centre = alignment.centre(prepared["lengths"], query, position)
    # From p - D to p + D there are never more positions, wherever between two of them p is.
    first = ops.cast(ops.floor(centre), "int32") - reach
    places = first + ops.arange(2 * reach + 1, dtype="int32")
    there = ops.logical_and(places >= 0, places < source)
    away = ops.cast(places, "float32") - centre
    places = ops.clip(places, 0, source - 1)
    there = ops.logical_and(there, rows_at(mask, places))
    weights = alignment.weigh(score.match_at(query, prepared["keys"], places), there, away)
    context = ops.matmul(weights[..., None, :], rows_at(prepared["values"], places))[..., 0, :]
    # What is outside of the source weighs 0, so that it can be added to any place.
    rows = ops.reshape(ops.arange(batch * target, dtype="int32"), (batch, target, 1)) * source
    spread = ops.scatter(
        ops.reshape(rows + places, (-1, 1)), ops.reshape(weights, (-1,)), (batch * target * source,)
    )
    return context, ops.reshape(spread, (batch, target, source))


def pay(reach: int, query: Any, prepared: dict[str, Any]) -> Any:
    """Whether windows cost less than all of the source; a tensor where sizes are not known yet.

    Every query has the keys of its own window copied, while one product of matrices scores all
    keys for all queries of a row: a source must be as long as several windows. Just how many was
    measured on one machine, for sources of 50 to 2,000.
    """
    return ops.shape(prepared["mask"])[1] > (2 * reach + 1) * (ops.shape(query)[1] + _AT_LEAST)
