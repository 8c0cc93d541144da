"""The table of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from regard.components.common.formatting import format_duration, metric_digits
from regard.pipeline.compare.results import (
    FINISHED,
    ComparisonResults,
    MetricResult,
    ModelResult,
)

_Best = Callable[[Iterable[float]], float]


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


def cells(results: ComparisonResults) -> list[list[str]]:
    """Return the headings and the rows; the best of several values is bold."""
    models = [*results["models"], *results["baselines"]]
    columns = [["model", *map(_name, models)]]

    def add(heading: str, values: list[float | None], form: str, best: _Best | None = None) -> None:
        texts = ["–" if value is None else format(value, form) for value in values]
        known = [value for value in values if value is not None]
        if best and len(known) > 1:
            text = format(best(known), form)
            texts = [f"**{text}**" if other == text else other for other in texts]
        columns.append([heading, *texts])

    add("parameters", [model.get("parameters") for model in models], ",d")
    add("training, s", [model.get("training_seconds") for model in models], ",.0f")
    add("epochs", [model.get("epochs") for model in models], ",d")
    add("steps", [model.get("steps") for model in models], ",d")
    if any("perplexity" in model or "metrics" not in model for model in results["models"]):
        add("perplexity", [model.get("perplexity") for model in models], ",.2f", min)
    metrics = {name: m for model in results["models"] for name, m in _metrics(model).items()}
    for name, metric in metrics.items():
        scores = [_metrics(model).get(name, {}).get("value") for model in models]
        form = f".{metric_digits(metric.get('scale', 100.0))}f"
        best = max if metric.get("higher_is_better", True) else min
        add(metric.get("label", name), scores, form, best)
    add("sentences/s", [model.get("sentences_per_second") for model in models], ",.1f")
    return [list(row) for row in zip(*columns, strict=True)]


def _metrics(model: ModelResult) -> dict[str, MetricResult]:
    return model.get("metrics", {})


def _name(model: ModelResult) -> str:
    """Return the label, with the state unless the model's last run completed."""
    return model["label"] if model["state"] == FINISHED else f"{model['label']} ({model['state']})"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
