"""One metric of some rows, of parts of them and of samples: every row is read once."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from models.metrics.base import Kind, Metric, Rows, Statistics

if TYPE_CHECKING:
    import numpy as np


class Scorer:
    """A metric by the sums of its statistics, where it has some, else by the rows themselves.

    Args:
        kind: of metric.
        rows: what the model answered and what it should have.
        options: as in ``models.metrics.scorers``.
    """

    def __init__(self, kind: Kind, rows: Rows, options: Mapping[str, Any]):
        # Numbers are judged by themselves: their columns need not be copied for every sample.
        rows = Rows(rows.hypotheses, rows.references) if kind.answers == "number" else rows
        self._kind, self._rows, self._options = kind, rows, options

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._rows.hypotheses)

    def metric(self, name: str) -> Metric:
        """The metric of all rows, called by its name."""
        kind = self._kind
        value, signature = self._whole
        return Metric(name, kind.label, value, signature, kind.higher_is_better, kind.scale)

    @property
    def value(self) -> float:
        """The value of all rows."""
        return self._whole[0]

    def part(self, chosen: Sequence[int]) -> float:
        """The value of some of the rows, to the last bit as if there were no others."""
        import numpy as np

        if self._kind.by_sums and self._sums is not None:
            return self._sums.value(self._sums.total(np.asarray(chosen, int)))
        return self._kind.function(self._rows.take(chosen), self._options)[0]

    def take(self, chosen: Sequence[int]) -> Scorer:
        """The same of some of the rows."""
        part = Scorer(self._kind, self._rows.take(chosen), self._options)
        if self._sums is not None:
            part._sums = dataclasses.replace(self._sums, rows=self._sums.rows[list(chosen)])
        return part

    def sample(self, chosen: np.ndarray) -> float:
        """The value of rows of which some may be there several times."""
        if self._sums is not None:
            return self._sums.value(self._sums.total(chosen))
        return self._kind.function(self._rows.take(chosen.tolist()), self._options)[0]

    def mixed(self, other: Scorer, mine: np.ndarray) -> float:
        """With the answers of another model to the rows that are not ``mine``."""
        if self._sums is not None and other._sums is not None:
            return self._sums.value(self._sums.total(mine) + other._sums.total(~mine))
        rows = dataclasses.replace(
            self._rows,
            hypotheses=[
                ours if keep else theirs
                for ours, theirs, keep in zip(
                    self._rows.hypotheses, other._rows.hypotheses, mine, strict=True
                )
            ],
        )
        return self._kind.function(rows, self._options)[0]

    @functools.cached_property
    def _sums(self) -> Statistics | None:
        return self._kind.statistics(self._rows, self._options) if self._kind.statistics else None

    @functools.cached_property
    def _whole(self) -> tuple[float, str]:
        if self._kind.by_sums and self._sums is not None:
            return self._sums.whole(), self._sums.signature
        return self._kind.function(self._rows, self._options)
