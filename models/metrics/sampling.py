"""How sure a metric is: intervals from samples of the rows, and tests of two models side by side.

Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation", §3 and §4 (the
bootstrap); Riezler and Maxwell 2005, "On Some Pitfalls in Automatic Evaluation and Significance
Testing for MT", §4.2 (approximate randomization). The samples and the interval's place are
sacreBLEU's, with its seed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from models.metrics.scorer import Scorer

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


def interval(scorer: Scorer, samples: int = 1000) -> Interval | None:
    """The interval of a metric; None where it is undefined in too many samples.

    Args:
        scorer: of the metric and the rows.
        samples: how many times as many rows are drawn, with replacement.
    """
    import numpy as np

    if not math.isfinite(scorer.value):
        return None
    values = np.array([scorer.sample(chosen) for chosen in _drawn(len(scorer), samples)])
    defined = np.sort(values[np.isfinite(values)])
    if len(defined) < (1 - _MOST_UNDEFINED) * samples:
        return None
    outside = len(defined) // 40
    return Interval(float(defined[outside]), float(defined[-outside - 1]), samples)


def p_value(
    one: Scorer, other: Scorer, test: Test = "randomization", samples: int = 1000
) -> float | None:
    """How probable so large a difference is where the two models are as good.

    Two-sided. The bootstrap's differences are centred with their signs; sacreBLEU takes their
    sizes first, which finds about twice as many differences.

    Args:
        one: of the answers of one model.
        other: of the answers of the other one, by the same metric to the same rows.
        test: ``randomization`` lets the models change places in some rows; ``bootstrap`` draws rows
            with replacement, which says little of a few rows.
        samples: how many.

    Returns:
        Between 0 and 1; None where the metric is undefined for one of them, or in too many samples.
    """
    import numpy as np

    difference = abs(one.value - other.value)
    if not math.isfinite(difference):
        return None
    if difference == 0:
        return 1.0
    count = len(one)
    if test == "bootstrap":
        found = np.array([one.sample(x) - other.sample(x) for x in _drawn(count, samples)])
    else:
        generator = np.random.default_rng(SEED)
        swaps = (generator.integers(2, size=count, dtype=bool) for _ in range(samples))
        found = np.array([one.mixed(other, x) - other.mixed(one, x) for x in swaps])
    found = found[np.isfinite(found)]
    if len(found) < (1 - _MOST_UNDEFINED) * samples:
        return None
    found = abs(found - found.mean() if test == "bootstrap" else found)
    # As large counts too, as in the papers: where few rows differ, most samples are. sacreBLEU
    # counts what is larger, which is the same for metrics that hardly ever come out alike.
    return (int(np.sum(found >= difference - _NOISE * abs(difference))) + 1) / (len(found) + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of several tests, adjusted so that all of them together err seldom.

    Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure": where those below a level
    are called differences, the probability that any is called so by chance is at most the level,
    whatever the tests have to do with each other. The least is taken as many times as there are
    tests (Bonferroni), the next one time less, and so on; none falls below one before it.
    """
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = least
    return adjusted


def _drawn(count: int, samples: int) -> Iterator[np.ndarray]:
    """Rows drawn with replacement, so many samples of them."""
    import numpy as np

    generator = np.random.default_rng(SEED)
    return (generator.choice(count, size=count, replace=True) for _ in range(samples))
