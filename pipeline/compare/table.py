"""The table of a comparison."""

import itertools
from collections.abc import Iterator, Sequence

from regard.components.evaluator.results import MetricResult
from regard.core.formatting import format_duration, metric_digits, value_with_interval
from regard.pipeline.compare.results import FINISHED, ComparisonResults, ModelResult

# The heading, the attribute of a model's result, and the format of each fixed column.
_FACTS = (
    ("parameters", "parameters", ",d"),
    ("training, s", "training_seconds", ",.0f"),
    ("epochs", "epochs", ",d"),
    ("steps", "steps", ",d"),
)


def markdown(results: ComparisonResults, command: str) -> str:
    """Return the table with the command that made it and notes on its figures."""
    headings, *rows = cells(results)
    alignment = ["---"] + ["---:"] * (len(headings) - 1)
    lines = [f"# {results.name}", "", "```sh", command, "```", ""]
    lines += [f"| {' | '.join(row)} |" for row in (headings, alignment, *rows)]
    lines.append("")
    lines += [f"- {note}" for note in notes(results.models)]
    return "\n".join([*lines, ""])


def cells(results: ComparisonResults) -> list[list[str]]:
    """Return the headings and the rows; a metric of the significantly best model is bold."""
    models = [*results.models, *results.baselines]
    columns = [["model", *map(_name, models)]]

    def add(heading: str, name: str, form: str) -> None:
        values = [getattr(model, name) for model in models]
        columns.append([heading, *("–" if v is None else format(v, form) for v in values)])

    for heading, name, form in _FACTS:
        add(heading, name, form)
    if any(model.perplexity is not None or not model.metrics for model in results.models):
        add("perplexity", "perplexity", ",.2f")
    metrics: dict[str, MetricResult] = {}
    for model in results.models:
        metrics |= model.metrics
    for name, metric in metrics.items():
        best = results.best.get(name)
        scores = [_score(model.metrics.get(name), model.label == best) for model in results.models]
        scores += [_score(baseline.metrics.get(name), False) for baseline in results.baselines]
        columns.append([metric.label, *scores])
    add("sentences/s", "sentences_per_second", ",.1f")
    return [list(row) for row in zip(*columns, strict=True)]


def _score(metric: MetricResult | None, is_best: bool) -> str:
    """Return a score with its interval, in bold for the significantly best model."""
    if metric is None:
        return "–"
    text = value_with_interval(metric.model_dump(), metric.scale)
    return f"**{text}**" if is_best else text


def notes(models: Sequence[ModelResult]) -> list[str]:
    """Return what is needed to interpret the figures, each fact once."""
    return list(dict.fromkeys(_notes([model for model in models if model.metrics])))


def _notes(models: Sequence[ModelResult]) -> Iterator[str]:
    metrics = list(itertools.chain.from_iterable(model.metrics.values() for model in models))
    for metric in metrics:
        if metric.signature:
            yield f"{metric.label}: `{metric.signature}`"
    if any(model.perplexity is not None for model in models):
        yield "perplexity: per token, on the eval split, with the exported weights"
    if any(metric.interval for metric in metrics):
        yield "[low, high]: 95% confidence interval; marked: significantly the best (p < 0.05)"
    if len({model.data for model in models}) > 1:
        yield "warning: the models have different data, so do not compare them; run this again"
    for model in models:
        if (model.stop_reason or "").startswith("max_minutes"):
            yield f"warning: {model.label} stopped by max_minutes, which includes compilation"
    counts = {model.test_rows for model in models}
    if len(counts) == 1:
        yield f"scores: on the test split, {counts.pop():,} rows"
    for device, batch in sorted({(m.device, m.decode_batch_size) for m in models}, key=str):
        if device is not None:
            yield f"sentences/s: the exported model on a {device}, batch size {batch}"


def summary_line(model: ModelResult) -> str:
    """Return the most important figures of a finished model."""
    facts = [
        f"{metric.label} {metric.value:.{metric_digits(metric.scale)}f}"
        for metric in list(model.metrics.values())[:2]
    ]
    if model.perplexity is not None:
        facts.append(f"perplexity {model.perplexity:.2f}")
    if model.training_seconds is not None:
        facts.append(f"trained in {format_duration(model.training_seconds)}")
    return " · ".join(facts)


def _name(model: ModelResult) -> str:
    """Return the label, with the state unless the model's last run completed."""
    return model.label if model.state == FINISHED else f"{model.label} ({model.state})"
