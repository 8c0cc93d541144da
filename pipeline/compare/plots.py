"""The plots of a comparison: a score by source length, and learning curves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.components.common.matplotlib_style import COLOURS, save, style
from regard.components.evaluator.results import CANDIDATE, LengthBucket
from regard.pipeline.compare.results import ComparisonResults, ModelResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Keyword arguments of ``Axes.plot``.
LineStyle = dict[str, Any]
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_MARKERS = ("o", "s", "^", "D")


def write_plots(results: ComparisonResults, folder: Path) -> None:
    """Draw the plots for which there are figures, as SVG."""
    models = results.models
    title = results.name
    styles = line_styles([model.label for model in models])
    with style({"font.size": 10}):
        if (metric := score_metric(models)) is not None:
            figure = score_by_length(models, metric, styles, title)
            save(figure, folder / f"{metric.replace('_', '-')}-by-length.svg")
        if any(model.history for model in models):
            save(learning_curves(models, styles, title), folder / "learning-curves.svg")


def line_styles(labels: Sequence[str]) -> dict[str, LineStyle]:
    """Return a distinct combination of colour, dashes and marker for each label."""
    from cycler import cycler

    lines = cycler(linestyle=_DASHES, marker=_MARKERS) * cycler(color=COLOURS)
    return dict(zip(labels, itertools.cycle(lines), strict=False))


def score_metric(models: Sequence[ModelResult]) -> str | None:
    """Return the metric to plot by length: BLEU if there is one, else the first metric."""
    for model in models:
        if model.by_length and model.metrics:
            return "bleu" if "bleu" in model.metrics else next(iter(model.metrics))
    return None


def score_by_length(
    models: Sequence[ModelResult], metric: str, styles: Mapping[str, LineStyle], title: str
) -> Figure:
    """Plot a metric by source length (Bahdanau et al. 2015, figure 2)."""
    from matplotlib.figure import Figure

    scored = [model for model in models if model.by_length and model.metrics]
    facts = scored[0].metrics[metric]
    unit = scored[0].length_unit
    label = facts.label
    buckets = itertools.chain.from_iterable(model.by_length for model in scored)
    counts = {_bounds(bucket): bucket.rows for bucket in buckets}
    bounds = sorted(counts)
    figure = Figure(figsize=(9.5, 5.2), dpi=150, layout="constrained")
    axes = figure.subplots()
    scored.sort(key=lambda model: model.metrics[metric].value, reverse=facts.higher_is_better)
    for model in scored:
        scores = {_bounds(b): b.scores[CANDIDATE][metric] for b in model.by_length}
        xs = [i for i, bound in enumerate(bounds) if bound in scores]
        ys = [scores[bounds[x]] for x in xs]
        digits = 1 if facts.scale >= 10 else 3
        text = f"{model.metrics[metric].value:.{digits}f}  {model.label}"
        axes.plot(xs, ys, label=text, **styles[model.label])
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
    from matplotlib.ticker import LogLocator, NullFormatter

    trained = [model for model in models if model.history]
    entries = list(itertools.chain.from_iterable(model.history for model in trained))
    if all("perplexity" in entry for entry in entries):
        measure, digits, label = "perplexity", 2, "perplexity per token"
    else:
        measure, digits, label = "loss", 4, "loss"
    minimum = {}
    for model in trained:
        minimum[model.label] = min(entry[measure] for entry in model.history)
    trained.sort(key=lambda model: minimum[model.label])
    figure = Figure(figsize=(12.5, 5.2), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for model in trained:
        name = model.label
        history = model.history
        ys = [entry[measure] for entry in history]
        every = max(1, len(history) // 8)
        left.plot([entry["step"] for entry in history], ys, markevery=every, **styles[name])
        minutes = [entry["seconds"] / 60 for entry in history]
        text = f"{minimum[name]:.{digits}f}  {name}"
        right.plot(minutes, ys, label=text, markevery=every, **styles[name])
    left.set_yscale("log")
    # The default labels only powers of ten, of which an axis from 5 to 60 has one.
    left.yaxis.set_major_formatter("{x:g}")
    values = [entry[measure] for entry in entries]
    is_wide = max(values) > 100 * min(values)
    left.yaxis.set_major_locator(
        LogLocator(subs=(1, 2, 5) if is_wide else (1, 1.5, 2, 3, 4, 5, 6, 8))
    )
    left.yaxis.set_minor_formatter(NullFormatter())
    left.set_xlabel("training steps")
    right.set_xlabel("training time, minutes")
    left.set_ylabel(f"{label}, eval split (log scale, lower is better)")
    left.set_title(f"{title}: learning curves", loc="left")
    _add_legend(right, f"lowest {measure}")
    return figure


def _bounds(bucket: LengthBucket) -> tuple[int, float]:
    return bucket.low, math.inf if bucket.high is None else bucket.high


def _range(lower: int, upper: float) -> str:
    if upper == math.inf:
        return f"{lower} or more"
    return f"up to {upper:.0f}" if lower == 0 else f"{lower}–{upper:.0f}"


def _add_legend(axes: Axes, title: str) -> None:
    """Add a legend to the right of the axes, in the order of the results."""
    axes.legend(
        loc="center left", bbox_to_anchor=(1.01, 0.5), title=title, handlelength=3.4,
        alignment="left", borderaxespad=0.0,
    )  # fmt: skip
