"""Metrics of whole tables of predictions, and of their rows by length."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from components.errors import UserError
from models import metrics
from models.metrics import Metric

# sacreBLEU's command line reads one sentence a line, so a break inside one must not survive.
_BREAKS = re.compile(r"\r\n|\r|\n")


def one_line(text: str) -> str:
    """The text with every line break replaced by a space."""
    return _BREAKS.sub(" ", text)


def wanted_metrics(config: Mapping[str, Any]) -> list[str]:
    """The metrics that are listed, and those that a floor or the comparison needs besides."""
    production = config.get("production") or {}
    needed = [*config.get("floors", {}), *([production["metric"]] if production else [])]
    return list(dict.fromkeys([*config["metrics"], *needed]))


def score(
    names: Sequence[str], table: Mapping[str, list[str]], config: Mapping[str, Any]
) -> dict[str, Metric]:
    """The metrics of one table with ``hypothesis`` and ``reference``, by name.

    Raises:
        UserError: for a metric or tokenizer that there is not, or no rows.
    """
    try:
        found = metrics.compute(
            names,
            table["hypothesis"],
            table["reference"],
            tokenize=config.get("tokenize", "13a"),
            lowercase=config.get("lowercase", False),
        )
    except ValueError as error:
        raise UserError(str(error), where="evaluation") from error
    return {metric.name: metric for metric in found}


def by_length(
    names: Sequence[str],
    lengths: Sequence[int],
    tables: Mapping[str, Mapping[str, list[str]]],
    config: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The metrics of each model in each bucket of source lengths; empty buckets are left out.

    Args:
        names: the metrics.
        lengths: the source length of each row, in pieces.
        tables: the predictions of each model, over the same rows.
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
            for model, table in tables.items():
                part = {name: [values[row] for row in chosen] for name, values in table.items()}
                values = score(names, part, config)
                bucket[model] = {name: metric.value for name, metric in values.items()}
            buckets.append(bucket)
        lower = upper + 1 if upper is not None else lower
    return buckets
