"""How sure a metric is: intervals from samples of the rows, and tests of two models side by side.

Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation", §3 and §4 (the
bootstrap); Riezler and Maxwell 2005, "On Some Pitfalls in Automatic Evaluation and Significance
Testing for MT", §4.2 (approximate randomization). The samples and the interval's place are
sacreBLEU's, with its seed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from models.metrics.base import Kind, Rows

if TYPE_CHECKING:
    import numpy as np

SEED = 12345
TESTS = ("bootstrap", "randomization")
Test = Literal["bootstrap", "randomization"]
# Of a metric that is undefined in more of the samples than this nothing is said.
_MOST_UNDEFINED = 0.05
_NOISE = 1e-9  # what sums in another order may differ by


@dataclasses.dataclass(frozen=True)
class Interval:
    """Where 95% of the samples lie.

    Attributes:
        low: the least of them.
        high: the greatest.
        samples: how many were drawn.
    """

    low: float
    high: float
    samples: int


def interval(
    kind: Kind, rows: Rows, options: Mapping[str, Any], samples: int = 1000
) -> Interval | None:
    """The interval of a metric; None where it is undefined in too many samples.

    Args:
        kind: of metric.
        rows: what the model answered and what it should have.
        options: as in ``compute``.
        samples: how many times as many rows are drawn, with replacement.
    """
    import numpy as np

    scorer = _Scorer(kind, rows, options)
    if not math.isfinite(scorer.whole()):
        return None
    values = np.array([scorer.sample(chosen) for chosen in _drawn(len(rows.hypotheses), samples)])
    defined = np.sort(values[np.isfinite(values)])
    if len(defined) < (1 - _MOST_UNDEFINED) * samples:
        return None
    outside = len(defined) // 40
    return Interval(float(defined[outside]), float(defined[-outside - 1]), samples)


def p_value(
    kind: Kind,
    one: Rows,
    other: Rows,
    options: Mapping[str, Any],
    test: Test = "randomization",
    samples: int = 1000,
) -> float | None:
    """How probable so large a difference is where the two models are as good.

    Two-sided. The bootstrap's differences are centred with their signs; sacreBLEU takes their
    sizes first, which finds about twice as many differences.

    Args:
        kind: of metric.
        one: the answers of one model.
        other: the answers of the other one, to the same rows.
        options: as in ``compute``.
        test: ``randomization`` lets the models change places in some rows; ``bootstrap`` draws rows
            with replacement, which says little of a few rows.
        samples: how many.

    Returns:
        Between 0 and 1; None where the metric is undefined for one of them, or in too many samples.
    """
    import numpy as np

    first, second = _Scorer(kind, one, options), _Scorer(kind, other, options)
    difference = abs(first.whole() - second.whole())
    if not math.isfinite(difference):
        return None
    if difference == 0:
        return 1.0
    count = len(one.hypotheses)
    if test == "bootstrap":
        found = np.array([first.sample(x) - second.sample(x) for x in _drawn(count, samples)])
    else:
        generator = np.random.default_rng(SEED)
        swaps = (generator.integers(2, size=count, dtype=bool) for _ in range(samples))
        found = np.array([first.mixed(second, x) - second.mixed(first, x) for x in swaps])
    found = found[np.isfinite(found)]
    if len(found) < (1 - _MOST_UNDEFINED) * samples:
        return None
    found = abs(found - found.mean() if test == "bootstrap" else found)
    # As large counts too, as in the papers: where few rows differ, most samples are. sacreBLEU
    # counts what is larger, which is the same for metrics that hardly ever come out alike.
    return (int(np.sum(found >= difference - _NOISE * abs(difference))) + 1) / (len(found) + 1)


class _Scorer:
    """A metric of any sample of some rows: by their sums, or by the rows themselves."""

    def __init__(self, kind: Kind, rows: Rows, options: Mapping[str, Any]):
        # Numbers are judged by themselves: their columns need not be copied for every sample.
        rows = Rows(rows.hypotheses, rows.references) if kind.answers == "number" else rows
        self._kind, self._rows, self._options = kind, rows, options
        self._found = kind.statistics(rows, options) if kind.statistics else None

    def whole(self) -> float:
        return self._kind.function(self._rows, self._options)[0]

    def sample(self, chosen: np.ndarray) -> float:
        if self._found is not None:
            return self._found.value(self._found.rows[chosen].sum(axis=0))
        return self._kind.function(self._rows.take(chosen.tolist()), self._options)[0]

    def mixed(self, other: _Scorer, mine: np.ndarray) -> float:
        """With the answers of another model to the rows that are not ``mine``."""
        if self._found is not None and other._found is not None:
            own = self._found.rows[mine].sum(axis=0)
            return self._found.value(own + other._found.rows[~mine].sum(axis=0))
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


def _drawn(count: int, samples: int) -> Iterator[np.ndarray]:
    """Rows drawn with replacement, so many samples of them."""
    import numpy as np

    generator = np.random.default_rng(SEED)
    return (generator.choice(count, size=count, replace=True) for _ in range(samples))
