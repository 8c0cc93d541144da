"""Perplexity of the references (Jelinek et al. 1977).

Perplexities are comparable only between models with the same vocabulary: the fewer tokens a text
has, the harder each one is to predict.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from regard.models.metrics.base import MetricOptions, Rows, Statistics
from regard.models.reference_columns import CUT, LENGTH, SCORE

if TYPE_CHECKING:
    import numpy as np


def perplexity(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute exp of the mean of -ln p over the tokens of the references, end tokens included.

    Only the first reference of a row counts. The metric reads the columns ``forced_score`` (the
    natural logarithm of the reference's probability), ``forced_length`` (its tokens) and
    ``forced_cut`` (the tokens that the model did not read). Without them it is undefined.
    """
    import numpy as np

    count = len(rows.hypotheses)
    values = [rows.columns.get(name, [math.nan] * count) for name in (SCORE, LENGTH)]
    columns = np.array(values, "float64").T.reshape(count, 2)
    if SCORE in rows.columns:
        signature = f"unit:token|tokens:{columns[:, 1].sum():.0f}"
        cut = sum(rows.columns.get(CUT, ()))
        signature += f"|cut:{cut}" if cut else ""
    elif LENGTH in rows.columns:
        signature = "unit:token|undefined:the new model has another vocabulary"
    else:
        signature = "unit:token|undefined:the model cannot score references"
    return Statistics(signature, columns, _perplexity)


def drop_incomparable_scores(rows: Rows, candidate: Rows) -> Rows:
    """Return the rows of another model, without scores if its vocabulary differs.

    The vocabularies differ if the token count of any reference does.
    """
    lengths = [side.columns.get(LENGTH) for side in (rows, candidate)]
    if None in lengths or lengths[0] == lengths[1]:
        return rows
    columns = {name: values for name, values in rows.columns.items() if name != SCORE}
    return dataclasses.replace(rows, columns=columns)


def _perplexity(total: np.ndarray) -> float:
    log_prob, tokens = total.tolist()
    try:
        return math.exp(-log_prob / tokens) if tokens else math.nan
    except OverflowError:
        return math.inf
