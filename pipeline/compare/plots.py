"""The plots of a comparison: a score by source length, and learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from regard.components.common.matplotlib_style import COLOURS, save, style
from regard.pipeline.compare.results import (
    ComparisonResults,
    LengthBucket,
    MetricResult,
    ModelResult,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "png")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_MARKERS = ("o", "s", "^", "D")


class LineStyle(TypedDict):
    """Keyword arguments of ``Axes.plot``."""

    color: str
    linestyle: Any
    marker: str


def write_plots(results: ComparisonResults, folder: Path) -> list[Path]:
    """Draw the plots for which there are figures, as SVG and PNG."""
    models = results["models"]
    styles = line_styles([model["label"] for model in models])
    files: list[Path] = []
    with style({"font.size": 10}):
        metric = score_metric(models)
        if metric is not None:
            figure = score_by_length(models, metric, styles, results["name"])
            files += _save(figure, folder / f"{metric.replace('_', '-')}-by-length")
        if any(model.get("history") for model in models):
            figure = learning_curves(models, styles, results["name"])
            files += _save(figure, folder / "learning-curves")
    return files


def line_styles(labels: Sequence[str]) -> dict[str, LineStyle]:
    """Return a distinct combination of colour, dashes and marker for each label."""
    styles: dict[str, LineStyle] = {}
    for index, label in enumerate(labels):
        colour, dash = COLOURS[index % len(COLOURS)], index // len(COLOURS) % len(_DASHES)
        styles[label] = {"color": colour, "linestyle": _DASHES[dash], "marker": _MARKERS[dash]}
    return styles


def score_metric(models: Sequence[ModelResult]) -> str | None:
    """Return the metric to plot by length: BLEU if there is one, else the first metric."""
    for model in models:
        if model.get("by_length") and model.get("metrics"):
            return "bleu" if "bleu" in model["metrics"] else next(iter(model["metrics"]))
    return None


def score_by_length(
    models: Sequence[ModelResult], metric: str, styles: Mapping[str, LineStyle], title: str
) -> Figure:
    """Plot a metric by source length (Bahdanau et al. 2015, figure 2)."""
    from matplotlib.figure import Figure

    scored = [model for model in models if model.get("by_length") and model.get("metrics")]
    facts = scored[0]["metrics"][metric]
    label, unit = facts.get("label", metric), scored[0].get("length_unit", "source tokens")
    counts = {_bounds(bucket): bucket["rows"] for m in scored for bucket in m["by_length"]}
    bounds = sorted(counts)
    figure = Figure(figsize=(9.5, 5.2), dpi=150, layout="constrained")
    axes = figure.subplots()
    scored.sort(key=lambda model: _quality(model["metrics"][metric]), reverse=True)
    for model in scored:
        scores = {_bounds(b): b["scores"]["candidate"][metric] for b in model["by_length"]}
        xs = [i for i, bound in enumerate(bounds) if bound in scores]
        ys = [scores[bounds[x]] for x in xs]
        value = model["metrics"][metric]["value"]
        digits = 1 if facts.get("scale", 100.0) >= 10 else 3
        text = f"{value:.{digits}f}  {model['label']}"
        axes.plot(xs, ys, label=text, **styles[model["label"]])
    ticks = [f"{_range(*bound)}\nn = {counts[bound]:,}" for bound in bounds]
    axes.set_xticks(range(len(bounds)), ticks)
    axes.set_xlabel(f"source length ({unit}); n: rows of the test split")
    axes.set_ylabel(label)
    axes.set_title(f"{title}: {label} by source length", loc="left")
    axes.grid(axis="x", visible=False)
    _add_legend(axes, f"{label}, all lengths")
    return figure


def learning_curves(
    models: Sequence[ModelResult], styles: Mapping[str, LineStyle], title: str
) -> Figure:
    """Plot the perplexity on the eval split by training step and by training time.

    Plots the loss if a model has no perplexity.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    trained = [model for model in models if model.get("history")]
    entries = [entry for model in trained for entry in model["history"]]
    measure, digits, label = "perplexity", 2, "perplexity per token"
    if any(measure not in entry for entry in entries):
        measure, digits, label = "loss", 4, "loss"
    minimum = {m["label"]: min(entry[measure] for entry in m["history"]) for m in trained}
    trained.sort(key=lambda model: minimum[model["label"]])
    figure = Figure(figsize=(12.5, 5.2), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for model in trained:
        name, history = model["label"], model["history"]
        ys = [entry[measure] for entry in history]
        every = max(1, len(history) // 8)
        left.plot([entry["step"] for entry in history], ys, markevery=every, **styles[name])
        minutes = [entry["seconds"] / 60 for entry in history]
        right.plot(
            minutes,
            ys,
            label=f"{minimum[name]:.{digits}f}  {name}",
            markevery=every,
            **styles[name],
        )
    left.set_yscale("log")
    # The default labels only powers of ten, of which an axis from 5 to 60 has one.
    left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    left.yaxis.set_major_locator(_log_locator([entry[measure] for entry in entries]))
    left.yaxis.set_minor_formatter(NullFormatter())
    left.set_xlabel("training steps")
    right.set_xlabel("training time, minutes")
    left.set_ylabel(f"{label}, eval split (log scale, lower is better)")
    left.set_title(f"{title}: learning curves", loc="left")
    _add_legend(right, f"lowest {measure}")
    return figure


def _log_locator(values: Sequence[float]) -> Any:
    """Return a locator with enough round numbers for a logarithmic axis."""
    from matplotlib.ticker import LogLocator

    wide = max(values) > 100 * min(values)
    return LogLocator(subs=(1.0, 2.0, 5.0) if wide else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))


def _quality(metric: MetricResult) -> float:
    return metric["value"] if metric.get("higher_is_better", True) else -metric["value"]


def _bounds(bucket: LengthBucket) -> tuple[int, float]:
    return bucket["low"], float("inf") if bucket["high"] is None else bucket["high"]


def _range(lower: int, upper: float) -> str:
    if upper == float("inf"):
        return f"{lower} or more"
    return f"up to {upper:.0f}" if lower == 0 else f"{lower}–{upper:.0f}"


def _add_legend(axes: Axes, title: str) -> None:
    """Add a legend to the right of the axes, in the order of the results."""
    axes.legend(
        loc="center left", bbox_to_anchor=(1.01, 0.5), title=title, handlelength=3.4,
        alignment="left", borderaxespad=0.0,
    )  # fmt: skip


def _save(figure: Figure, stem: Path) -> list[Path]:
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in FORMATS]
    for path in files:
        save(figure, path)
    return files
