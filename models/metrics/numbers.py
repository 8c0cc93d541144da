"""Metrics of answers that are numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from models.metrics.base import Rows, Statistics, mean_of

if TYPE_CHECKING:
    import numpy as np

# Numbers that are closer than this share of their size are one number: float32 has seven digits.
_NOISE = 1e-6


def pearson(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """Pearson's correlation of hypotheses and references, -1 to 1."""
    return _correlation("pearsonr", rows)


def spearman(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """Spearman's correlation of their ranks, -1 to 1; equal numbers share the mean rank."""
    return _correlation("spearmanr", rows)


def mse(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """The mean of the squared differences; lower is better."""
    hypotheses, references, signature = _numbers(rows)
    if reason := _not_finite(hypotheses, references):
        return math.nan, f"{signature}|undefined:{reason}"
    return statistics.fmean(_squares(hypotheses, references)), signature


def mse_summed(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """One squared difference a row."""
    hypotheses, references, _ = _numbers(rows)
    return mean_of(_squares(hypotheses, references))


def pearson_summed(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """The moments of both sides, which are centred first so that the sums lose nothing."""
    import numpy as np

    hypotheses, references, _ = _numbers(rows)
    x, y = (np.asarray(side) - np.mean(side) for side in (hypotheses, references))

    def value(total: np.ndarray) -> float:
        count, sx, sy, sxx, syy, sxy = total
        spread = (count * sxx - sx * sx) * (count * syy - sy * sy)
        return float((count * sxy - sx * sy) / math.sqrt(spread)) if spread > 0 else math.nan

    return Statistics(np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1), value)


def _squares(hypotheses: Sequence[float], references: Sequence[float]) -> list[float]:
    return [(got - wanted) ** 2 for got, wanted in zip(hypotheses, references, strict=True)]


def _correlation(name: str, rows: Rows) -> tuple[float, str]:
    """A correlation of SciPy's; it is undefined where one side does not vary."""
    hypotheses, references, signature = _numbers(rows)
    reason = _not_finite(hypotheses, references) or _constant(hypotheses, references)
    if reason:
        return math.nan, f"{signature}|undefined:{reason}"
    from scipy import stats

    return float(getattr(stats, name)(hypotheses, references).statistic), signature


def _not_finite(hypotheses: list[float], references: list[float]) -> str:
    """Which side has what is no number, in words; or the empty string."""
    for side, values in (("hypotheses", hypotheses), ("references", references)):
        if not all(map(math.isfinite, values)):
            return f"not all {side} are finite"
    return ""


def _constant(hypotheses: list[float], references: list[float]) -> str:
    """Which side does not vary, in words; or the empty string."""
    for side, values in (("hypotheses", hypotheses), ("references", references)):
        if max(values) - min(values) <= _NOISE * max(map(abs, values)):
            return f"all {side} are the same"
    return ""


def _numbers(rows: Rows) -> tuple[list[float], list[float], str]:
    """Both sides as floats, and the signature; of several references the mean counts."""
    hypotheses = [float(number) for number in rows.hypotheses]
    references = [statistics.fmean(map(float, row)) for row in rows.references]
    return hypotheses, references, f"nrefs:{rows.reference_count()}"
