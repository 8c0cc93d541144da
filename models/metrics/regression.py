"""Metrics of models that output numbers: correlations and the mean squared error."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.models.metrics.base import MetricOptions, Rows, Statistics, mean_statistics

if TYPE_CHECKING:
    import numpy as np

# Relative difference below which numbers are equal: float32 has seven digits.
_TOLERANCE = 1e-6


def pearson(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute Pearson's correlation of hypotheses and references, -1 to 1.

    The statistics are the moments of both sides, centred first so that the sums keep their
    precision.
    """
    import numpy as np

    x, y = (np.asarray(side) - np.mean(side) for side in _numbers(rows))

    def value(total: np.ndarray) -> float:
        count, sx, sy, sxx, syy, sxy = total
        product = (count * sxx - sx * sx) * (count * syy - sy * sy)
        return float((count * sxy - sx * sy) / math.sqrt(product)) if product > 0 else math.nan

    columns = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    return dataclasses.replace(_correlation("pearsonr", rows), rows=columns, value=value)


def spearman(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute Spearman's rank correlation, -1 to 1; equal numbers share the mean rank."""
    return _correlation("spearmanr", rows)


def mse(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute the mean squared error; lower is better."""
    hypotheses, references = _numbers(rows)
    pairs = zip(hypotheses, references, strict=True)
    errors = [(output - gold) ** 2 for output, gold in pairs]
    result = mean_statistics(errors, f"nrefs:{rows.reference_count()}")
    return _undefined(result, _undefined_side((hypotheses, references), may_be_constant=True))


def _undefined(result: Statistics, reason: str) -> Statistics:
    """Return an undefined metric if there is a reason, otherwise the metric itself."""
    if not reason:
        return result
    signature = f"{result.signature}|undefined:{reason}"
    return dataclasses.replace(result, signature=signature, precise_value=math.nan)


def _correlation(name: str, rows: Rows) -> Statistics:
    """Compute one of SciPy's correlations; it is undefined if one side is constant."""
    sides = _numbers(rows)
    result = Statistics(f"nrefs:{rows.reference_count()}")
    if reason := _undefined_side(sides, may_be_constant=False):
        return _undefined(result, reason)
    from scipy import stats

    value = float(getattr(stats, name)(*sides).statistic)
    return dataclasses.replace(result, precise_value=value)


def _undefined_side(sides: Sequence[list[float]], may_be_constant: bool) -> str:
    """Describe the side for which a metric is undefined; return "" if there is none."""
    for name, values in zip(("hypotheses", "references"), sides, strict=True):
        if not all(map(math.isfinite, values)):
            return f"not all {name} are finite"
        is_constant = max(values) - min(values) <= _TOLERANCE * max(map(abs, values))
        if is_constant and not may_be_constant:
            return f"all {name} are the same"
    return ""


def _numbers(rows: Rows) -> tuple[list[float], list[float]]:
    """Return both sides as floats. Several references are averaged."""
    references = [statistics.fmean(map(float, row)) for row in rows.references]
    return [float(number) for number in rows.hypotheses], references
