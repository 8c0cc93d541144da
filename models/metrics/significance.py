"""Confidence intervals from bootstrap samples, and significance tests between two models.

Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation", §3 and §4 (the
bootstrap); Riezler and Maxwell 2005, "On Some Pitfalls in Automatic Evaluation and Significance
Testing for MT", §4.2 (approximate randomization). Samples, seed and interval follow sacreBLEU.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from regard.models.metrics.scorer import Scorer

if TYPE_CHECKING:
    import numpy as np

SEED = 12345
Test = Literal["bootstrap", "randomization"]
# There is no result if the metric is undefined in a larger share of the samples.
_MAX_UNDEFINED = 0.05
_TOLERANCE = 1e-9  # relative error of sums in another order


@dataclasses.dataclass(frozen=True)
class Interval:
    """The interval that contains 95% of the samples.

    Attributes:
        low: the lower bound.
        high: the upper bound.
        samples: the number of samples.
    """

    low: float
    high: float
    samples: int


def confidence_interval(scorer: Scorer, samples: int = 1000) -> Interval | None:
    """Return a metric's 95% interval; None if it is undefined in too many samples.

    Args:
        scorer: the metric and the rows.
        samples: the number of samples, each drawn with replacement and as large as the corpus.
    """
    import numpy as np

    if not math.isfinite(scorer.value):
        return None
    resamples = _bootstrap_samples(len(scorer), samples)
    values = np.array([scorer.sample_value(indices) for indices in resamples])
    return _interval(values, samples)


def _interval(values: np.ndarray, samples: int) -> Interval | None:
    """Return the interval of 95% of the finite values; None if too few of them are finite."""
    import numpy as np

    finite = np.sort(values[np.isfinite(values)])
    if not len(finite) or len(finite) < (1 - _MAX_UNDEFINED) * samples:
        return None
    outside = len(finite) // 40
    return Interval(float(finite[outside]), float(finite[-outside - 1]), samples)


def difference_interval(scorer: Scorer, other: Scorer, samples: int = 1000) -> Interval | None:
    """Return the 95% interval of a metric's difference between two models on the same rows.

    Both models are scored on the same samples (Koehn 2004, §4); None if the metric is undefined in
    too many of them.

    Args:
        scorer: the outputs of one model.
        other: the outputs of the other model, whose value is subtracted.
        samples: the number of samples.
    """
    import numpy as np

    resamples = _bootstrap_samples(len(scorer), samples)
    values = np.array([scorer.sample_value(x) - other.sample_value(x) for x in resamples])
    return _interval(values, samples)


def p_value(
    scorer: Scorer, other: Scorer, test: Test = "randomization", samples: int = 1000
) -> float | None:
    """Return the two-sided p-value of the difference between two models.

    The bootstrap's differences are centred with their signs; sacreBLEU takes absolute values
    first, which finds about twice as many differences.

    Args:
        scorer: the outputs of one model.
        other: the outputs of the other model, with the same metric and rows.
        test: ``randomization`` swaps the models' outputs in some rows; ``bootstrap`` draws rows
            with replacement, which is unreliable for few rows.
        samples: the number of samples.

    Returns:
        From 0 to 1; None if the metric is undefined for a model, or in too many samples.
    """
    import numpy as np

    difference = abs(scorer.value - other.value)
    if not math.isfinite(difference):
        return None
    if difference == 0:
        return 1.0
    count = len(scorer)
    if test == "bootstrap":
        resamples = _bootstrap_samples(count, samples)
        differences = np.array([scorer.sample_value(x) - other.sample_value(x) for x in resamples])
    else:
        generator = np.random.default_rng(SEED)
        masks = (generator.integers(2, size=count, dtype=bool) for _ in range(samples))
        differences = np.array(
            [scorer.swapped_value(other, x) - other.swapped_value(scorer, x) for x in masks]
        )
    differences = differences[np.isfinite(differences)]
    if len(differences) < (1 - _MAX_UNDEFINED) * samples:
        return None
    differences = abs(differences - differences.mean() if test == "bootstrap" else differences)
    # Equal differences count as extreme, as in the papers: if few rows differ, most are equal.
    # sacreBLEU counts only larger ones, which is the same for metrics that rarely tie.
    extreme = int(np.sum(differences >= difference - _TOLERANCE * abs(difference)))
    return (extreme + 1) / (len(differences) + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p-values of several tests by Holm's method.

    Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure": the probability of any
    false rejection at a level is at most the level, however the tests depend on each other. The
    smallest p-value is multiplied by the number of tests (Bonferroni), the next by one less, and
    so on; no adjusted value is smaller than the one before.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, minimum = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        minimum = max(minimum, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = minimum
    return adjusted


def _bootstrap_samples(count: int, samples: int) -> Iterator[np.ndarray]:
    """Yield the row indices of each sample, drawn with replacement."""
    import numpy as np

    generator = np.random.default_rng(SEED)
    return (generator.choice(count, size=count, replace=True) for _ in range(samples))
