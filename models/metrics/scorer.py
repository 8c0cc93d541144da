"""Scores one metric on all rows, on subsets and on samples, reading every row once."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.models.metrics.base import (
    DEFAULT_OPTIONS,
    Metric,
    MetricOptions,
    MetricSpec,
    Rows,
    Statistics,
)

if TYPE_CHECKING:
    import numpy as np


class Scorer:
    """One metric on some rows, from sums of row statistics where the metric has them.

    Args:
        spec: the metric.
        rows: the outputs and the references.
        options: settings of the metric.
    """

    def __init__(self, spec: MetricSpec, rows: Rows, options: MetricOptions = DEFAULT_OPTIONS):
        # Metrics of numbers read no columns; dropping them saves copies for every sample.
        if spec.scores_numbers:
            rows = Rows(rows.hypotheses, rows.references)
        self._spec, self._rows, self._options = spec, rows, options

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows.hypotheses)

    def metric(self, name: str) -> Metric:
        """Return the metric of all rows under this name."""
        spec, signature = self._spec, self._statistics.signature
        return Metric(name, spec.label, self.value, signature, spec.higher_is_better, spec.scale)

    @functools.cached_property
    def value(self) -> float:
        """The value on all rows."""
        return self._statistics.corpus_value()

    def subset_value(self, indices: Sequence[int]) -> float:
        """Return the value on some rows, bit for bit as if there were no others."""
        import numpy as np

        if self._statistics.is_exact:
            return self._statistics.value(self._statistics.sum_rows(np.asarray(indices, int)))
        return self._compute(self._rows.take(indices))

    def row_values(self) -> np.ndarray:
        """Return the value on each row alone, ``[rows]``.

        All are NaN for metrics that only all rows together have.
        """
        import numpy as np

        statistics = self._statistics
        if not statistics.is_exact or statistics.rows is None:
            return np.full(len(self), np.nan)
        return np.array([statistics.value(row) for row in statistics.rows], "float64")

    def take(self, indices: Sequence[int]) -> Scorer:
        """Return a scorer of some of the rows."""
        subset = Scorer(self._spec, self._rows.take(indices), self._options)
        if self._statistics.is_exact and self._statistics.rows is not None:
            rows = self._statistics.rows[list(indices)]
            subset._statistics = dataclasses.replace(self._statistics, rows=rows)
        return subset

    def sample_value(self, indices: np.ndarray) -> float:
        """Return the value on a sample of rows, which may contain a row several times."""
        if self._statistics.rows is not None:
            return self._statistics.value(self._statistics.sum_rows(indices))
        return self._compute(self._rows.take(indices.tolist()))

    def swapped_value(self, other: Scorer, is_own: np.ndarray) -> float:
        """Return the value with another model's outputs where ``is_own`` is false."""
        if self._statistics.rows is not None:
            mine = self._statistics.sum_rows(is_own)
            theirs = other._statistics.sum_rows(~is_own)
            return self._statistics.value(mine + theirs)
        pairs = zip(self._rows.hypotheses, other._rows.hypotheses, is_own, strict=True)
        hypotheses = [this if is_mine else that for this, that, is_mine in pairs]
        return self._compute(dataclasses.replace(self._rows, hypotheses=hypotheses))

    @functools.cached_property
    def _statistics(self) -> Statistics:
        return self._spec.compute(self._rows, self._options)

    def _compute(self, rows: Rows) -> float:
        return self._spec.compute(rows, self._options).corpus_value()
