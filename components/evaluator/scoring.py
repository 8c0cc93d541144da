"""Metrics of all answers of a model, and of the answers to rows by their length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.errors import UserError
from models import metrics
from models.metrics import Metric, Rows


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
    options = {name: config[name] for name in ("tokenize", "lowercase") if name in config}
    try:
        for name in names:
            metrics.find(name, rows.answers if rows.hypotheses else None)
    except ValueError as error:
        raise UserError(str(error), where="evaluation.metrics") from error
    try:
        found = metrics.compute(names, rows, options)
    except ValueError as error:
        raise UserError(str(error), where="evaluation") from error
    return {metric.name: metric for metric in found}


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
            bucket: dict[str, Any] = {"from": lower, "to": upper, "rows": len(chosen)}
            for model, rows in models.items():
                values = score(names, rows.take(chosen), config)
                bucket[model] = {name: metric.value for name, metric in values.items()}
            buckets.append(bucket)
        lower = upper + 1 if upper is not None else lower
    return buckets
