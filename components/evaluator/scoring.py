"""Metrics of all answers of a model, and of the answers to rows by their length."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from components.errors import UserError
from models import metrics
from models.metrics import Metric, Rows, sampling

_MOST_VALUES = 30


def wanted_metrics(config: Mapping[str, Any]) -> list[str]:
    """The metrics that are listed, and those that a floor or the comparison needs besides."""
    production = config.get("production") or {}
    needed = [*config.get("floors", {}), *([production["metric"]] if production else [])]
    return list(dict.fromkeys([*config["metrics"], *needed]))


def score(names: Sequence[str], rows: Rows, config: Mapping[str, Any]) -> dict[str, Metric]:
    """The metrics of one model's answers, by name.

    Args:
        names: the metrics.
        rows: what the model answered and what it should have.
        config: the ``evaluation`` section.

    Raises:
        UserError: for a metric that there is not, or that cannot judge such answers, for a
            tokenizer that there is not, or no rows.
    """
    try:
        for name in names:
            metrics.find(name, rows.answers if rows.hypotheses else None)
    except ValueError as error:
        raise UserError(str(error), where="evaluation.metrics") from error
    try:
        found = metrics.compute(names, rows, _options(config))
    except ValueError as error:
        raise UserError(str(error), where="evaluation") from error
    return {metric.name: metric for metric in found}


def intervals(
    names: Sequence[str], rows: Rows, config: Mapping[str, Any]
) -> dict[str, dict[str, float | int] | None]:
    """For each metric the interval with 95% of the samples; None where it has none.

    Args:
        names: the metrics.
        rows: what the model answered and what it should have.
        config: the ``evaluation`` section; without ``samples`` there is no interval.
    """
    count = config.get("samples", 0)
    if not count:
        return dict.fromkeys(names)
    found = {
        name: sampling.interval(metrics.METRICS[name], rows, _options(config), count)
        for name in names
    }
    return {name: None if one is None else dataclasses.asdict(one) for name, one in found.items()}


def comparison(candidate: Rows, production: Rows, config: Mapping[str, Any]) -> dict[str, Any]:
    """The test of the candidate against the model in production, with all that decides about it.

    Args:
        candidate: its answers.
        production: those of the model in production, to the same rows.
        config: the ``evaluation`` section with its ``production``.

    Returns:
        The ``metric``, ``p_value``, ``test`` and ``samples``; no p-value where there is no test.
    """
    wanted = config["production"]
    name, test, count = wanted["metric"], wanted.get("test"), config.get("samples", 0)
    p_value = None
    if test and count:
        kind = metrics.METRICS[name]
        p_value = sampling.p_value(kind, candidate, production, _options(config), test, count)
    return {"metric": name, "p_value": p_value, "test": test, "samples": count}


def by_slice(
    names: Sequence[str], models: Mapping[str, Rows], config: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The metrics of each model in each of ``slices``; what is empty is left out.

    Args:
        names: the metrics.
        models: the answers of each model, to the same rows; ``candidate`` is one of them.
        config: the ``evaluation`` section.

    Returns:
        Of each part its ``slice`` (the feature, or ``pattern``), its ``name`` (the feature's value;
        None for what is left), the ``rows``, and each model's metrics.
    """
    wanted, candidate = config.get("slices", {}), models["candidate"]
    parts: list[tuple[str, str | None, list[int]]] = []
    for feature in wanted.get("by", ()):
        values = _texts(candidate, feature)
        frequent = [value for value, _ in Counter(values).most_common(_MOST_VALUES)]
        chosen = {
            value: [at for at, one in enumerate(values) if one == value] for value in frequent
        }
        parts += [(feature, value, rows) for value, rows in sorted(chosen.items())]
        parts.append((feature, None, [at for at, one in enumerate(values) if one not in chosen]))
    for name, pattern in wanted.get("patterns", {}).items():
        find = re.compile(pattern["matches"]).search
        texts = enumerate(_texts(candidate, pattern["feature"]))
        parts.append(("pattern", name, [at for at, text in texts if find(text)]))
    return [
        {"slice": kind, "name": name, "rows": len(rows), **_values(names, models, rows, config)}
        for kind, name, rows in parts
        if rows
    ]


def _texts(rows: Rows, feature: str) -> list[str]:
    """A feature of text, row by row; the one that is no column is the reference."""
    if feature in rows.columns:
        return [text or "" for text in rows.columns[feature]]
    return [wanted[0] for wanted in rows.references]


def _values(
    names: Sequence[str],
    models: Mapping[str, Rows],
    chosen: Sequence[int],
    config: Mapping[str, Any],
) -> dict[str, dict[str, float]]:
    """The metrics of each model's answers to some of the rows."""
    return {
        model: {name: one.value for name, one in score(names, rows.take(chosen), config).items()}
        for model, rows in models.items()
    }


def by_length(
    names: Sequence[str],
    lengths: Sequence[int],
    models: Mapping[str, Rows],
    config: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The metrics of each model in each bucket of lengths; empty buckets are left out.

    Args:
        names: the metrics.
        lengths: the length of each row, in the unit of the model's contract.
        models: the answers of each model, to the same rows.
        config: the ``evaluation`` section; ``length_buckets`` are the upper bounds.
    """
    bounds = [*sorted(config.get("length_buckets", [])), None]
    lower = 0
    buckets = []
    for upper in bounds:
        chosen = [
            row
            for row, length in enumerate(lengths)
            if length >= lower and (upper is None or length <= upper)
        ]
        if chosen:
            bucket = {"from": lower, "to": upper, "rows": len(chosen)}
            buckets.append({**bucket, **_values(names, models, chosen, config)})
        lower = upper + 1 if upper is not None else lower
    return buckets


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    names = ("tokenize", "lowercase", "alignment")
    return {name: config[name] for name in names if name in config}
