"""The metrics of a model's answers: of all of them, of parts, and beside another model's."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from components.errors import UserError
from components.evaluator.slices import Slice
from models import metrics
from models.metrics import Rows, sampling


def wanted_metrics(config: Mapping[str, Any]) -> list[str]:
    """The metrics that are listed, and those that a floor or the comparison needs besides."""
    production = config.get("production") or {}
    floors = [config.get("floors", {}), *config.get("slices", {}).get("floors", {}).values()]
    needed = [name for floor in floors for name in floor]
    needed += [production["metric"]] if production else []
    return list(dict.fromkeys([*config["metrics"], *needed]))


class Scores:
    """What one model's answers are worth; every row is read once a metric.

    Args:
        names: the metrics.
        rows: what the model answered and what it should have.
        config: the ``evaluation`` section.

    Attributes:
        metrics: of all rows, by name.

    Raises:
        UserError: for a metric that there is not, or that cannot judge such answers, for a
            tokenizer that there is not, or no rows.
    """

    def __init__(self, names: Sequence[str], rows: Rows, config: Mapping[str, Any]):
        try:
            for name in names:
                metrics.find(name, rows.answers if rows.hypotheses else None)
        except ValueError as error:
            raise UserError(str(error), where="evaluation.metrics") from error
        try:
            self._scorers = metrics.scorers(names, rows, _options(config))
            self.metrics = {name: one.metric(name) for name, one in self._scorers.items()}
        except ValueError as error:
            raise UserError(str(error), where="evaluation") from error

    def intervals(self, samples: int) -> dict[str, dict[str, float | int] | None]:
        """For each metric the interval with 95% of the samples; None where it has none."""
        if not samples:
            return dict.fromkeys(self._scorers)
        found = {name: sampling.interval(one, samples) for name, one in self._scorers.items()}
        return {
            name: None if one is None else dataclasses.asdict(one) for name, one in found.items()
        }

    def part(self, rows: Sequence[int]) -> dict[str, float]:
        """The values of some of the rows."""
        return {name: scorer.part(rows) for name, scorer in self._scorers.items()}

    def p_value(
        self,
        other: Scores,
        name: str,
        test: sampling.Test,
        samples: int,
        rows: Sequence[int] | None = None,
    ) -> float | None:
        """Of a metric of all rows, or of some: how probable so large a difference is by chance."""
        one, two = self._scorers[name], other._scorers[name]
        if rows is not None:
            one, two = one.take(rows), two.take(rows)
        return sampling.p_value(one, two, test, samples)


@dataclasses.dataclass(frozen=True)
class Part:
    """A slice with the values of every model's metrics in it, by model and metric."""

    slice: Slice
    values: Mapping[str, Mapping[str, float]]

    def to_dict(self) -> dict[str, Any]:
        """The part as plain JSON values, the models beside the slice."""
        return {**self.slice.to_dict(), **self.values}


def in_parts(scores: Mapping[str, Scores], slices: Sequence[Slice]) -> list[Part]:
    """The values in each slice."""
    return [
        Part(one, {model: found.part(one.rows) for model, found in scores.items()})
        for one in slices
    ]


def comparison(
    candidate: Scores, production: Scores, config: Mapping[str, Any], slices: Sequence[Slice] = ()
) -> dict[str, Any]:
    """The tests of the candidate against the model in production, with all that decides about them.

    Those of slices are one family: their p-values are adjusted by Holm's method, so that the
    probability that chance alone makes the candidate worse in any of them is at most the level.
    They are always by randomization: of few rows the bootstrap takes noise for a difference. The
    test of all rows stands apart, at the level itself.

    Args:
        candidate: of its answers.
        production: of the answers of the model in production to the same rows.
        config: the ``evaluation`` section with its ``production``.
        slices: those in which the models are compared too.

    Returns:
        The ``metric``, ``p_value``, ``test`` and ``samples``, and the ``slices``: of each
        ``slice``, ``name``, ``rows``, ``test``, ``samples``, its own ``p_value`` and the
        ``adjusted`` one. There are no p-values where there is no test, and none of a metric that is
        undefined in too many samples.
    """
    wanted = config["production"]
    name, test, count = wanted["metric"], wanted.get("test"), config.get("samples", 0)
    found: dict[str, Any] = {"metric": name, "p_value": None, "test": test, "samples": count}
    alone: list[float | None] = [None] * len(slices)
    how: dict[str, Any] = {"test": None, "samples": 0}
    if test and count:
        found["p_value"] = candidate.p_value(production, name, test, count)
        # Of fewer samples even the least p-value, times the number of slices, would be chance.
        most = max(count, math.ceil(len(slices) / wanted.get("significance", 0.05)))
        how = {"test": "randomization", "samples": most}
        alone = [candidate.p_value(production, name, **how, rows=one.rows) for one in slices]
    adjusted = iter(sampling.holm([p for p in alone if p is not None]))
    found["slices"] = [
        {
            **one.to_dict(),
            **how,
            "p_value": p_value,
            "adjusted": None if p_value is None else next(adjusted),
        }
        for one, p_value in zip(slices, alone, strict=True)
    ]
    return found


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    names = ("tokenize", "lowercase", "alignment")
    return {name: config[name] for name in names if name in config}
