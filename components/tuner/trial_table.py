"""The table of a search's trials, and how scores and values are written."""

import json
from collections.abc import Mapping, Sequence
from typing import TypedDict

from pydantic import JsonValue

from regard.core.formatting import metric_digits
from regard.models.metrics import METRICS

COMPLETED, FAILED, RUNNING = "completed", "failed", "running"


class TrialRow(TypedDict):
    """One trial, with the figures of the weights that it would export.

    ``trial`` is the number of KerasTuner's folder, from 0.
    """

    trial: int
    continued_from: int | None
    state: str
    score: float | None
    values: dict[str, JsonValue]
    metrics: dict[str, float]
    step: int
    epochs: int
    seconds: float
    stop_reason: str
    error: str


class TrialTable(TypedDict):
    """The content of ``trials.json``: the search, and its trials, the best first."""

    objective: str
    direction: str
    algorithm: str
    folder: str
    trials: list[TrialRow]


def rank_trials(rows: Sequence[TrialRow], direction: str) -> list[TrialRow]:
    """Return the rows with the best first; rows without a score come last, in their order.

    Of equal scores the earlier trial comes first.
    """
    sign = -1 if direction == "max" else 1
    scored = [(row["score"], row) for row in rows if row["score"] is not None]
    scored.sort(key=lambda pair: sign * pair[0])
    return [row for _, row in scored] + [row for row in rows if row["score"] is None]


def objective_label(objective: str) -> str:
    """Return the display name of an objective, such as ``BLEU``."""
    return METRICS[objective].label if objective in METRICS else objective


def format_score(objective: str, score: float | None) -> str:
    """Return a score with its label, such as ``BLEU 23.10``."""
    scale = METRICS[objective].scale if objective in METRICS else 1.0
    text = "undefined" if score is None else f"{score:.{metric_digits(scale)}f}"
    return f"{objective_label(objective)} {text}"


def format_values(values: Mapping[str, JsonValue]) -> str:
    """Return a trial's values in one line."""
    return ", ".join(f"{key} {format_value(value)}" for key, value in values.items())


def format_value(value: JsonValue) -> str:
    """Return a value as it is written in YAML."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
