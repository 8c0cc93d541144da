"""Which rule is asked about which numbers, until it is known whether a model is good enough."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from components.evaluator import blessing as rules
from components.evaluator.blessing import Blessing, Verdict, Where
from components.evaluator.scoring import Part
from components.evaluator.slices import Slice
from models.metrics import Metric


def compared(slices: Sequence[Slice], config: Mapping[str, Any]) -> list[Slice]:
    """The slices in which the candidate is compared with the model in production."""
    wanted = (config.get("production") or {}).get("slices", ())
    return [one for one in slices if any(map(one.called, wanted))]


def decide(
    summary: Mapping[str, Any],
    metrics: Mapping[str, Mapping[str, Metric]],
    parts: Sequence[Part],
    against: Mapping[str, Any] | None,
    faults: Mapping[str, Any],
    config: Mapping[str, Any],
) -> Blessing:
    """Whether the model is good enough, and why.

    Args:
        summary: the Predictor's.
        metrics: of all rows, by model and name.
        parts: the slices.
        against: what `comparison` has found; None where there is none.
        faults: what is wrong with the answers, by check.
        config: the ``evaluation`` section.
    """
    version = summary.get("production_version") or ""
    verdicts = rules.undefined(metrics["candidate"])
    verdicts += rules.floors(metrics["candidate"], config.get("floors", {}))
    verdicts += _slice_floors(metrics, parts, config)
    verdicts += rules.degeneration(faults)
    comparison = config.get("production")
    if comparison and against:
        verdicts += _comparison(metrics, parts, against, version, comparison)
        verdicts += _missing(comparison.get("slices", ()), parts)
    elif comparison and summary.get("production_error"):
        verdicts += rules.no_comparison(version, summary["production_error"])
    # Where a slice is named twice, by its kind and by its title, it is told of once.
    return rules.bless(list(dict.fromkeys(verdicts)))


def _slice_floors(
    metrics: Mapping[str, Mapping[str, Metric]], parts: Sequence[Part], config: Mapping[str, Any]
) -> list[Verdict]:
    limits = config.get("slices", {}).get("floors", {})
    verdicts = []
    for name, floors in limits.items():
        for part in parts:
            if part.slice.called(name):
                values = _inside("candidate", metrics, part)
                verdicts += rules.floors(values, floors, _where(part.slice))
    return verdicts + _missing(limits, parts)


def _comparison(
    metrics: Mapping[str, Mapping[str, Metric]],
    parts: Sequence[Part],
    against: Mapping[str, Any],
    version: str,
    config: Mapping[str, Any],
) -> list[Verdict]:
    name = config["metric"]
    level = {
        "tolerance": config.get("tolerance", 0.0),
        "version": version,
        "significance": config.get("significance", 0.05),
    }
    pair = metrics["candidate"][name], metrics["production"][name]
    verdicts = rules.not_worse(*pair, p_value=against["p_value"], **level)
    tests = {(test["slice"], test["name"]): test for test in against["slices"]}
    for part in parts:
        test = tests.get((part.slice.kind, part.slice.name))
        if test is not None:
            ours, theirs = (
                _inside(model, metrics, part)[name] for model in ("candidate", "production")
            )
            how = {"p_value": test["adjusted"], "tested": test["test"] is not None}
            verdicts += rules.not_worse(ours, theirs, where=_where(part.slice), **how, **level)
    return verdicts


def _missing(names: Mapping[str, Any] | Sequence[str], parts: Sequence[Part]) -> list[Verdict]:
    """That nothing is known of slices, for each that the test split has no rows of."""
    verdicts = []
    for name in names:
        if not any(part.slice.called(name) for part in parts):
            kind = name.partition("=")[0]
            there = [part.slice.title for part in parts if part.slice.kind == kind]
            verdicts += rules.without_rows(name, there)
    return verdicts


def _inside(
    model: str, metrics: Mapping[str, Mapping[str, Metric]], part: Part
) -> dict[str, Metric]:
    """A model's metrics with their values in a slice."""
    return {
        name: dataclasses.replace(metric, value=part.values[model][name])
        for name, metric in metrics[model].items()
    }


def _where(one: Slice) -> Where:
    return Where(one.title, len(one.rows))
