"""The table of a comparison."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from regard.components.common.formatting import format_duration, metric_digits
from regard.pipeline.compare.results import FINISHED, ComparisonResults, ModelResult


@dataclasses.dataclass(frozen=True)
class Column:
    """One column: its heading, how to get and format its value, and which value is the best."""

    heading: str
    value: Callable[[ModelResult], float | None]
    format: str
    best: Literal["highest", "lowest"] | None = None


def markdown(results: ComparisonResults, command: str) -> str:
    """Return the table with the command that made it and notes on its figures."""
    headings, *rows = cells(results)
    lines = [f"# {results['name']}", "", "```sh", command, "```", ""]
    lines += [_markdown_row(headings), _markdown_row(["---", *["---:"] * (len(headings) - 1)])]
    lines += [_markdown_row(row) for row in rows]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes(results["models"])), ""])


def notes(models: Sequence[ModelResult]) -> list[str]:
    """Return what is needed to interpret the figures, each fact once."""
    evaluated = [model for model in models if "metrics" in model]
    if not evaluated:
        return []
    return [*_signatures(evaluated), *_conditions(evaluated)]


def summary_line(model: ModelResult) -> str:
    """Return the most important figures of a finished model."""
    facts = []
    for name, metric in list(model.get("metrics", {}).items())[:2]:
        value = f"{metric['value']:.{metric_digits(metric.get('scale', 100.0))}f}"
        facts.append(f"{metric.get('label', name)} {value}")
    if "perplexity" in model:
        facts.append(f"perplexity {model['perplexity']:.2f}")
    if "training_seconds" in model:
        facts.append(f"trained in {format_duration(model['training_seconds'])}")
    return " · ".join(facts)


def _signatures(models: Sequence[ModelResult]) -> list[str]:
    metrics = [metric for model in models for metric in model["metrics"].values()]
    lines = [
        f"{m.get('label', m['name'])}: `{m['signature']}`" for m in metrics if m.get("signature")
    ]
    return list(dict.fromkeys(lines))


def _conditions(models: Sequence[ModelResult]) -> Iterator[str]:
    if any("perplexity" in model for model in models):
        yield "perplexity: per token, on the eval split, with the exported weights"
    counts = {model["test_rows"] for model in models if "test_rows" in model}
    if len(counts) == 1:
        yield f"scores: on the test split, {counts.pop():,} rows"
    speeds = {(m["device"], m.get("decode_batch_size")) for m in models if "device" in m}
    for device, batch in sorted(speeds, key=str):
        yield f"sentences/s: the exported model on a {device}, batch size {batch}"


def _columns(models: Sequence[ModelResult]) -> list[Column]:
    columns = [
        Column("parameters", lambda m: m.get("parameters"), ",d"),
        Column("training, s", lambda m: m.get("training_seconds"), ",.0f"),
        Column("epochs", lambda m: m.get("epochs"), ",d"),
        Column("steps", lambda m: m.get("steps"), ",d"),
    ]
    if any("perplexity" in model or "metrics" not in model for model in models):
        columns.append(Column("perplexity", lambda m: m.get("perplexity"), ",.2f", "lowest"))
    metrics = {name: m for model in models for name, m in model.get("metrics", {}).items()}
    for name, metric in metrics.items():
        best: Literal["highest", "lowest"] = (
            "highest" if metric.get("higher_is_better", True) else "lowest"
        )
        form = f".{metric_digits(metric.get('scale', 100.0))}f"
        columns.append(Column(metric.get("label", name), _metric_value(name), form, best))
    speed = Column("sentences/s", lambda m: m.get("sentences_per_second"), ",.1f")
    return [*columns, speed]


def _metric_value(name: str) -> Callable[[ModelResult], float | None]:
    def value(model: ModelResult) -> float | None:
        metric = model.get("metrics", {}).get(name)
        return None if metric is None else metric["value"]

    return value


def cells(results: ComparisonResults) -> list[list[str]]:
    """Return the headings and the rows; the best of several values is bold."""
    models = [*results["models"], *results["baselines"]]
    rows = [["model"], *([_name(model)] for model in models)]
    for column in _columns(results["models"]):
        values = [column.value(model) for model in models]
        texts = ["–" if value is None else format(value, column.format) for value in values]
        known = [value for value in values if value is not None]
        if column.best and len(known) > 1:
            best = format(max(known) if column.best == "highest" else min(known), column.format)
            texts = [f"**{text}**" if text == best else text for text in texts]
        for row, text in zip(rows, [column.heading, *texts], strict=True):
            row.append(text)
    return rows


def _name(model: ModelResult) -> str:
    """Return the label, with the state unless the model's last run completed."""
    return model["label"] if model["state"] == FINISHED else f"{model['label']} ({model['state']})"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
