"""Metrics of models that output numbers: correlations and the mean squared error."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.models.metrics.base import MetricOptions, Rows, Statistics, mean_statistics

if TYPE_CHECKING:
    import numpy as np

# Relative difference below which numbers are equal: float32 has seven digits.
_TOLERANCE = 1e-6


def pearson(rows: Rows, options: MetricOptions) -> tuple[float, str]:
    """Compute Pearson's correlation of hypotheses and references, -1 to 1."""
    return _correlation("pearsonr", rows)


def spearman(rows: Rows, options: MetricOptions) -> tuple[float, str]:
    """Compute Spearman's rank correlation, -1 to 1; equal numbers share the mean rank."""
    return _correlation("spearmanr", rows)


def mse(rows: Rows, options: MetricOptions) -> tuple[float, str]:
    """Compute the mean squared error; lower is better."""
    hypotheses, references, signature = _numbers(rows)
    if reason := _non_finite_side(hypotheses, references):
        return math.nan, f"{signature}|undefined:{reason}"
    return statistics.fmean(_squared_errors(hypotheses, references)), signature


def mse_statistics(rows: Rows, options: MetricOptions) -> Statistics:
    """Return one squared error per row."""
    hypotheses, references, _ = _numbers(rows)
    return mean_statistics(_squared_errors(hypotheses, references))


def pearson_statistics(rows: Rows, options: MetricOptions) -> Statistics:
    """Return the moments of both sides, centred first so that the sums keep their precision."""
    import numpy as np

    hypotheses, references, _ = _numbers(rows)
    x, y = (np.asarray(side) - np.mean(side) for side in (hypotheses, references))

    def value(total: np.ndarray) -> float:
        count, sx, sy, sxx, syy, sxy = total
        product = (count * sxx - sx * sx) * (count * syy - sy * sy)
        return float((count * sxy - sx * sy) / math.sqrt(product)) if product > 0 else math.nan

    return Statistics(np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1), value)


def _squared_errors(hypotheses: Sequence[float], references: Sequence[float]) -> list[float]:
    return [(output - gold) ** 2 for output, gold in zip(hypotheses, references, strict=True)]


def _correlation(name: str, rows: Rows) -> tuple[float, str]:
    """Compute one of SciPy's correlations; it is undefined if one side is constant."""
    hypotheses, references, signature = _numbers(rows)
    reason = _non_finite_side(hypotheses, references) or _constant_side(hypotheses, references)
    if reason:
        return math.nan, f"{signature}|undefined:{reason}"
    from scipy import stats

    return float(getattr(stats, name)(hypotheses, references).statistic), signature


def _non_finite_side(hypotheses: list[float], references: list[float]) -> str:
    """Describe the side with values that are not finite; return "" if there is none."""
    for side, values in (("hypotheses", hypotheses), ("references", references)):
        if not all(map(math.isfinite, values)):
            return f"not all {side} are finite"
    return ""


def _constant_side(hypotheses: list[float], references: list[float]) -> str:
    """Describe the side that does not vary; return "" if there is none."""
    for side, values in (("hypotheses", hypotheses), ("references", references)):
        if max(values) - min(values) <= _TOLERANCE * max(map(abs, values)):
            return f"all {side} are the same"
    return ""


def _numbers(rows: Rows) -> tuple[list[float], list[float], str]:
    """Return both sides as floats, and the signature. Several references are averaged."""
    hypotheses = [float(number) for number in rows.hypotheses]
    references = [statistics.fmean(map(float, row)) for row in rows.references]
    return hypotheses, references, f"nrefs:{rows.reference_count()}"
