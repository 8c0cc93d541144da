"""How probable a model finds the references: its perplexity (Jelinek et al. 1977).

Unlike other metrics it compares only models of one vocabulary: the fewer pieces a text has, the
harder each of them is to foresee.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from models.metrics.base import Rows, Statistics

# What the model told of the first reference: see the Predictor.
SCORE, PIECES = "forced_score", "forced_length"


def perplexity(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """exp of the mean of -ln p over the pieces of the references, their ends counted; from 1 on.

    Of several references the first counts. It reads the columns ``forced_score``, the natural
    logarithm of a reference's probability, and ``forced_length``, its pieces; without them it is
    undefined.
    """
    if SCORE not in rows.columns:
        return math.nan, "unit:piece|undefined:the model scores no given answer"
    pieces = int(sum(rows.columns[PIECES]))
    return _value([sum(rows.columns[SCORE]), pieces]), f"unit:piece|pieces:{pieces}"


def perplexity_summed(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """Of each row the logarithm and the number of pieces."""
    import numpy as np

    count = len(rows.hypotheses)
    columns = [rows.columns.get(name, [math.nan] * count) for name in (SCORE, PIECES)]
    return Statistics(np.array(columns, "float64").T.reshape(count, 2), _value)


def _value(total: Sequence[float]) -> float:
    logarithm, pieces = total
    try:
        return math.exp(-logarithm / pieces) if pieces else math.nan
    except OverflowError:
        return math.inf
