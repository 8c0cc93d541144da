"""Which rows of the test split are shown: the worst, the best, and some by chance."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from components.evaluator.answers import answered
from components.reporter.facts import Facts
from components.words import figure
from models.metrics import METRICS, Rows

SHOWN = 6
MOST_JUDGED = 20_000  # rows that are judged one by one, spread over the split
_SEED = 17


@dataclasses.dataclass(frozen=True)
class Ranked:
    """The rows that are shown.

    Attributes:
        groups: their places in the table, as ``worst``, ``chance`` and ``best``.
        told: of each place how good the answer is, in words.
    """

    groups: Mapping[str, Sequence[int]]
    told: Mapping[int, str]


def ranked(facts: Facts) -> Ranked:
    """The rows of a run that are shown; none where nothing was answered."""
    if facts.table is None:
        return Ranked({}, {})
    rows = answered(facts.table, facts.predicted["contract"])
    count = len(rows.hypotheses)
    places = list(range(0, count, math.ceil(count / MOST_JUDGED) or 1))
    rows = rows.take(places) if len(places) < count else rows
    values, told = quality(rows, facts.metrics.get("metrics", {}), facts.about.config)
    chosen = choose(values, [_length(rows.references[at][0]) for at in range(len(places))])
    groups = {name: [places[at] for at in found] for name, found in chosen.items()}
    return Ranked(groups, dict(zip(places, told, strict=True)))


def quality(
    rows: Rows, found: Iterable[str], config: Mapping[str, Any]
) -> tuple[list[float], list[str]]:
    """How good each answer is, the higher the better, and the same in words.

    Texts are judged by chrF, which says something of single sentences; numbers by their distance;
    positions by the first metric of the run that can be told of single rows. What is undefined is
    worse than anything.

    Args:
        rows: the answers.
        found: the metrics of the run, by name.
        config: the whole configuration.
    """
    if rows.answers == "number":
        pairs = zip(rows.hypotheses, rows.references, strict=True)
        errors = [abs(got - wanted[0]) for got, wanted in pairs]
        told = [f"off by {e:.3g}" if math.isfinite(e) else "undefined" for e in errors]
        return [-error if math.isfinite(error) else -math.inf for error in errors], told
    options = {"lowercase": config.get("evaluation", {}).get("lowercase", False)}
    names = ["chrf"] if rows.answers == "text" else [*found, "exact_match"]
    kinds = [METRICS[name] for name in names if name in METRICS]
    kind = next(k for k in kinds if k.statistics and k.judges(rows.answers) and not k.looks)
    of_row: Callable[[int], float]
    if kind.by_sums and kind.statistics:
        statistics = kind.statistics(rows, options)

        def of_row(at: int) -> float:
            return statistics.value(statistics.rows[at])

    else:  # its function knows what is undefined, such as a tour that leaves a city out

        def of_row(at: int) -> float:
            return kind.function(rows.take([at]), options)[0]

    values = [of_row(at) for at in range(len(rows.hypotheses))]
    sign = 1.0 if kind.higher_is_better else -1.0
    told = [f"{kind.label} {figure(value, kind.scale)}" for value in values]
    return [sign * value if math.isfinite(value) else -math.inf for value in values], told


def choose(values: Sequence[float], lengths: Sequence[int]) -> dict[str, list[int]]:
    """Which rows are shown: ``worst``, ``chance`` and ``best``, none of them twice.

    Of equally good ones the longest: they show more.
    """
    order = sorted(range(len(values)), key=lambda row: (values[row], -lengths[row]))
    worst = order[:SHOWN]
    left = sorted(set(order) - set(worst), key=lambda row: (-values[row], -lengths[row]))
    best = left[:SHOWN]
    rest = left[SHOWN:]
    chance = sorted(random.Random(_SEED).sample(rest, min(SHOWN, len(rest))))
    return {"worst": worst, "chance": chance, "best": best}


def _length(reference: Any) -> int:
    return len(reference) if isinstance(reference, Sequence) else 0
