"""Trials as rows of a table: which is the best, and how they are written."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from components.tuner.journal import DONE
from models.metrics import METRICS

Row = Mapping[str, Any]


def ranked(rows: Sequence[Row], direction: str) -> list[Row]:
    """The best first; those without a score behind, in their order.

    Of equals the one that began first is the better one.
    """
    sign = -1 if direction == "max" else 1
    done = sorted((row for row in rows if row["state"] == DONE), key=lambda r: sign * r["score"])
    return done + [row for row in rows if row["state"] != DONE]


def best_of(rows: Sequence[Row], direction: str) -> Row:
    """The best trial; one of them must be done."""
    return ranked(rows, direction)[0]


def figure_of(objective: str, value: float) -> str:
    """A score in words, such as ``BLEU 23.10``."""
    if objective not in METRICS:
        return f"{objective} {value:.4f}"
    kind = METRICS[objective]
    return f"{kind.label} {value:.{2 if kind.scale == 100.0 else 4}f}"


def values_text(values: Mapping[str, Any]) -> str:
    """What a trial trains with, in one line."""
    return ", ".join(f"{key} {plain(value)}" for key, value in values.items())


def plain(value: Any) -> str:
    """A value as it stands in YAML."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def as_csv(rows: Sequence[Row], direction: str) -> str:
    """The ranked table as CSV: one line a trial, one column a key, all measures."""
    rows = ranked(rows, direction)
    keys = list(rows[0]["values"])
    measures = list(dict.fromkeys(name for row in rows for name in row.get("measures", {})))
    facts = ["trial", "continues", "state", "score"]
    ends = ["step", "epochs", "seconds", "finished", "error"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*facts, *keys, *measures, *ends])
    for row in rows:
        writer.writerow(
            [
                *(row.get(name) for name in facts),
                *(plain(row["values"][key]) for key in keys),
                *(row.get("measures", {}).get(name) for name in measures),
                *(row.get(name) for name in ends),
            ]
        )
    return text.getvalue()
