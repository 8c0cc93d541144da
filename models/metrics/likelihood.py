"""How probable a model finds the references: its perplexity (Jelinek et al. 1977).

Unlike other metrics it compares only models of one vocabulary: the fewer pieces a text has, the
harder each of them is to foresee.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from models.metrics.base import Rows, Statistics

if TYPE_CHECKING:
    import numpy as np

# What the model told of the first reference: see the Predictor.
SCORE, PIECES, CUT = "forced_score", "forced_length", "forced_cut"


def perplexity(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """exp of the mean of -ln p over the pieces of the references, their ends counted; from 1 on.

    Of several references the first counts. It reads the columns ``forced_score``, the natural
    logarithm of a reference's probability, ``forced_length``, its pieces, and ``forced_cut``, how
    many more it has, which the model did not read; without them it is undefined.
    """
    import numpy as np

    count = len(rows.hypotheses)
    told = [rows.columns.get(name, [math.nan] * count) for name in (SCORE, PIECES)]
    columns = np.array(told, "float64").T.reshape(count, 2)
    if SCORE in rows.columns:
        signature = f"unit:piece|pieces:{columns[:, 1].sum():.0f}"
        cut = sum(rows.columns.get(CUT, ()))
        signature += f"|cut:{cut}" if cut else ""
    elif PIECES in rows.columns:
        signature = "unit:piece|undefined:its pieces are not those of the new model"
    else:
        signature = "unit:piece|undefined:the model scores no given answer"
    return Statistics(columns, _value, signature)


def comparable(rows: Rows, new: Rows) -> Rows:
    """The rows of a model as far as their perplexity can stand beside that of a new model.

    Where any reference has not as many pieces to both, their vocabularies differ, and the scores
    are left out.
    """
    pieces = [side.columns.get(PIECES) for side in (rows, new)]
    if None in pieces or pieces[0] == pieces[1]:
        return rows
    kept = {name: values for name, values in rows.columns.items() if name != SCORE}
    return dataclasses.replace(rows, columns=kept)


def _value(total: np.ndarray) -> float:
    logarithm, pieces = total.tolist()
    try:
        return math.exp(-logarithm / pieces) if pieces else math.nan
    except OverflowError:
        return math.inf
