"""How probable a model finds the references: its perplexity (Jelinek et al. 1977).

Unlike other metrics it compares only models of one vocabulary: the fewer pieces a text has, the
harder each of them is to foresee.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from models.metrics.base import Rows, Statistics

if TYPE_CHECKING:
    import numpy as np

# What the model told of the first reference: see the Predictor.
SCORE, PIECES = "forced_score", "forced_length"


def perplexity(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """exp of the mean of -ln p over the pieces of the references, their ends counted; from 1 on.

    Of several references the first counts. It reads the columns ``forced_score``, the natural
    logarithm of a reference's probability, and ``forced_length``, its pieces; without them it is
    undefined.
    """
    import numpy as np

    count = len(rows.hypotheses)
    told = [rows.columns.get(name, [math.nan] * count) for name in (SCORE, PIECES)]
    columns = np.array(told, "float64").T.reshape(count, 2)
    if SCORE in rows.columns:
        signature = f"unit:piece|pieces:{columns[:, 1].sum():.0f}"
    else:
        signature = "unit:piece|undefined:the model scores no given answer"
    return Statistics(columns, _value, signature)


def _value(total: np.ndarray) -> float:
    logarithm, pieces = total.tolist()
    try:
        return math.exp(-logarithm / pieces) if pieces else math.nan
    except OverflowError:
        return math.inf
