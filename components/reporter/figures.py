"""The figures of a report, each with its numbers as a table."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from regard.components.common.matplotlib_style import BLUE, GREY, ORANGE
from regard.components.reporter.attention_statistics import AttentionStatistics
from regard.components.reporter.run_facts import RunFacts
from regard.components.reporter.tables import format_share
from regard.core.formatting import format_count, metric_digits, value_with_interval
from regard.models.metrics import METRICS

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = (3.7, 2.4)  # inches
_SPLIT_COLOURS = {"train": BLUE, "eval": ORANGE, "test": GREY}
_MAX_TABLE_ROWS = 40

History = Sequence[Mapping[str, float]]
Tooltips = dict[str, Sequence[str]]


@dataclasses.dataclass(frozen=True)
class ReportFigure:
    """One figure.

    Attributes:
        name: the name of its file, without the extension.
        section: the section of the report: ``scores``, ``training``, ``data`` or ``attention``.
        title: the title of the figure.
        figure: the drawing.
        header: the header of the table.
        rows: the rows of the table.
        tooltips: the text of each mark by the ``gid`` of its group of marks.
    """

    name: str
    section: str
    title: str
    figure: Figure
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    tooltips: Tooltips


def draw_figures(facts: RunFacts, attention: AttentionStatistics | None) -> list[ReportFigure]:
    """Draw all figures that have data, with the active ``matplotlib_style``."""
    history = facts.training.get("history", [])
    figures = [_draw_by_length(facts)] if facts.by_length and facts.metrics else []
    figures += [_draw_reliability(facts.confidence)] if facts.confidence else []
    unit = facts.training.get("unit", "tokens")
    curves = _curves(history, unit, *_evaluated_rows(facts))
    figures += [_draw_curve(history, curve) for curve in curves]
    lengths = facts.data_checks.get("lengths", {})
    figures += [_draw_lengths(name, **entry) for name, entry in lengths.items()]
    if attention is not None:
        title = f"Attention entropy of {attention.row_count}"
        axis = "normalized entropy (1 = uniform)"
        figures.append(_draw_histogram("entropy", title, axis, attention.entropy, 1.0))
        if attention.coverage is not None:
            inputs = format_count(len(attention.coverage), f"input {attention.unit[:-1]}")
            title, axis = f"Coverage of {inputs}", "sum of attention weights"
            figures.append(_draw_histogram("coverage", title, axis, attention.coverage, 3.0))
    return figures


@dataclasses.dataclass(frozen=True)
class _Curve:
    """One quantity over the steps of a training; ``keys`` maps keys of the history to labels."""

    name: str
    title: str
    keys: Mapping[str, str]
    digits: int
    is_logarithmic: bool = False
    maximum: float = math.inf


def _evaluated_rows(facts: RunFacts) -> tuple[int | None, int | None]:
    """The rows of the eval split that evaluations use, and those that they decode, if known."""
    rows = facts.training.get("rows", {}).get("eval", {}).get("usable")
    limit = facts.config.get("training", {}).get("validation_rows")
    return rows, min(rows, limit) if rows and limit else rows


def _curves(
    history: History, unit: str, rows: int | None, decoded_rows: int | None
) -> list[_Curve]:
    """The curves whose values the training has recorded.

    Args:
        history: the evaluations.
        unit: the unit of the speed, ``tokens`` or ``rows``.
        rows: the rows of the eval split; None if they are unknown.
        decoded_rows: those for which outputs are decoded.
    """
    recorded = {key for entry in history for key in entry}
    loss_keys = {"train_loss": "train", "loss": "eval"}
    speed_keys = {"tokens_per_second": f"{unit}/s"}
    split, decoded = (
        "eval" if count is None else f"eval, {count:,} rows" for count in (rows, decoded_rows)
    )
    loss_title, keys = f"Loss ({split})", {"perplexity": "eval"}
    curves = [
        _Curve("loss", loss_title, loss_keys, 4, is_logarithmic=True),
        _Curve("perplexity", f"Perplexity ({split})", keys, 3, is_logarithmic=True),
        *(_metric_curve(name, decoded) for name in METRICS if name in recorded - {"perplexity"}),
        _Curve("learning-rate", "Learning rate", {"learning_rate": "rate"}, 6),
        _Curve("speed", f"Training speed, {unit}/s", speed_keys, 0),
    ]
    return [curve for curve in curves if recorded.issuperset(curve.keys)]


def _metric_curve(name: str, split: str) -> _Curve:
    metric = METRICS[name]
    title, digits = f"{metric.label} ({split})", metric_digits(metric.scale)
    return _Curve(name, title, {name: "eval"}, digits, maximum=metric.scale)


def _draw_curve(history: History, curve: _Curve) -> ReportFigure:
    figure, axes = _new_axes()
    tooltips: Tooltips = {}
    for (key, label), colour in zip(curve.keys.items(), (BLUE, ORANGE), strict=False):
        points = {entry["step"]: entry[key] for entry in history if _is_finite(entry.get(key))}
        texts = [f"step {step:,}: {label} {_format(points[step], curve)}" for step in points]
        size = 3.5 if len(points) < 40 else 2
        tooltips |= _plot(axes, key, points, texts, color=colour, label=label, markersize=size)
    title = curve.title
    if curve.is_logarithmic and _use_logarithmic_scale(
        axes, [entry[key] for entry in history for key in curve.keys if key in entry]
    ):
        title += ", log scale"
    else:
        _start_at_zero(axes)
    _end_at(axes, curve.maximum)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("step")
    if len(curve.keys) > 1:
        _add_legend(axes)
    rows = [
        [f"{entry['step']:,}", *(_format(entry.get(key), curve) for key in curve.keys)]
        for entry in _sample_history(history)
    ]
    header = ["step", *curve.keys.values()]
    return ReportFigure(curve.name, "training", title, figure, header, rows, tooltips)


def _draw_by_length(facts: RunFacts) -> ReportFigure:
    """The main metric by input length (Bahdanau et al. 2015, figure 2)."""
    name, metric = next(iter(facts.metrics["metrics"].items()))
    buckets, unit = facts.by_length["buckets"], facts.by_length["unit"]
    labels = [_bucket_label(bucket["low"], bucket["high"]) for bucket in buckets]
    rows = [[label, f"{bucket['rows']:,}"] for label, bucket in zip(labels, buckets, strict=True)]
    tick_labels = ["\n".join(row) for row in rows]
    figure, axes = _new_axes()
    tooltips: Tooltips = {}
    header = [f"length ({unit})", "rows"]
    models = [("candidate", "this model", BLUE), ("production", "production", GREY)]
    for model, label, colour in models:
        values = [bucket["scores"].get(model, {}).get(name) for bucket in buckets]
        if not any(map(_is_finite, values)):
            continue
        scores = [
            {"value": value, "interval": bucket.get("intervals", {}).get(model)}
            for value, bucket in zip(values, buckets, strict=True)
        ]
        texts = [value_with_interval(score, metric["scale"]) for score in scores]
        for at, score in enumerate(scores):
            if interval := score["interval"]:
                axes.vlines(at, interval["low"], interval["high"], color=colour, lw=1)
        notes = [
            f"{row[0]}: {metric['label']} {text}, {row[1]} rows"
            for row, text, value in zip(rows, texts, values, strict=True)
            if _is_finite(value)
        ]
        points = {at: value if _is_finite(value) else math.nan for at, value in enumerate(values)}
        tooltips |= _plot(axes, model, points, notes, color=colour, label=label)
        header.append(label)
        rows = [[*row, text] for row, text in zip(rows, texts, strict=True)]
    axes.set_xticks(range(len(buckets)), tick_labels)
    axes.set_xlabel(f"input length, {unit}; rows")
    axes.margins(y=0.15)
    _start_at_zero(axes)
    _end_at(axes, metric["scale"])
    if len(tooltips) > 1:
        _add_legend(axes)
    title = f"{metric['label']} by input length"
    if any(bucket.get("intervals") for bucket in buckets):
        title += " with 95% intervals"
    return ReportFigure("by-length", "scores", title, figure, header, rows, tooltips)


def _draw_reliability(confidence: Mapping[str, Any]) -> ReportFigure:
    """The share of good outputs by confidence (Niculescu-Mizil and Caruana 2005, figure 1)."""
    figure, axes = _new_axes()
    bins = confidence["bins"]
    labels = [f"{100 * part['low']:.0f}–{100 * part['high']:.0f}%" for part in bins]
    rows = [
        [label, f"{part['rows']:,}", *(format_share(part[key]) for key in ("probability", "share"))]
        for label, part in zip(labels, bins, strict=True)
    ]
    axes.plot([0, 1], [0, 1], color=GREY, lw=1, linestyle="--")
    notes = [f"{row[0]}: {row[1]} rows, {row[3]} good" for row in rows]
    points = {part["probability"]: part["share"] for part in bins}
    tooltips = _plot(axes, "confidence", points, notes, color=BLUE)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.03)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    axes.set_xlabel("confidence")
    axes.set_ylabel("share of good outputs")
    title = f"Reliability of the confidence ({confidence['label']} ≥ {confidence['good']:g})"
    header = ["confidence", "rows", "mean", "good"]
    return ReportFigure("reliability", "scores", title, figure, header, rows, tooltips)


def _draw_lengths(
    name: str, unit: str, bounds: Sequence[int], splits: Mapping[str, Sequence[int]]
) -> ReportFigure:
    """The distribution of the lengths of a feature in each split."""
    used = [i for i in range(len(bounds) + 1) if any(counts[i] for counts in splits.values())]
    bins = range(used[0], used[-1] + 1) if used else range(1)
    labels = [_bin_label(bounds, i) for i in bins]
    figure, axes = _new_axes()
    tooltips: Tooltips = {}
    for split, counts in splits.items():
        total = sum(counts)
        if not total:
            continue
        points = {at: counts[i] / total for at, i in enumerate(bins)}
        notes = [
            f"{split}, {label}: {counts[i]:,} rows ({format_share(counts[i] / total)})"
            for i, label in zip(bins, labels, strict=True)
        ]
        style = {"color": _SPLIT_COLOURS.get(split, GREY), "label": f"{split} ({total:,})"}
        tooltips |= _plot(axes, split, points, notes, markersize=3, **style)
    step = max(1, len(labels) // 6)
    edges = [f">{bounds[-1]}" if i == len(bounds) else f"{bounds[i]}" for i in bins]
    axes.set_xticks(range(0, len(labels), step), edges[::step])
    _use_percent_scale(axes)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("share of rows")
    axes.set_xlabel(f"{unit}s, up to")
    _add_legend(axes)
    rows = [
        [label, *(f"{counts[i]:,}" for counts in splits.values())]
        for i, label in zip(bins, labels, strict=True)
    ]
    file, title = f"lengths-{name.replace('_', '-')}", f"Lengths of {name}"
    return ReportFigure(file, "data", title, figure, [f"{unit}s", *splits], rows, tooltips)


def _draw_histogram(
    name: str, title: str, axis: str, values: np.ndarray | Sequence[float], maximum: float
) -> ReportFigure:
    """A histogram from 0 to ``maximum``; larger values are in the last bar."""
    import numpy as np

    edges = np.linspace(0.0, maximum, 21)
    counts, _ = np.histogram(np.clip(values, 0.0, maximum), edges)
    fractions = counts / max(counts.sum(), 1)
    figure, axes = _new_axes()
    bars = axes.bar(edges[:-1], fractions, np.diff(edges), align="edge", color=BLUE, ec="white")
    labels = [f"{low:.2f} to {up:.2f}" for low, up in itertools.pairwise(edges)]
    if np.max(values, initial=0.0) > maximum:
        labels[-1] = f"over {edges[-2]:.2f}"
    rows = [
        [label, format_share(float(value))] for label, value in zip(labels, fractions, strict=True)
    ]
    for i, bar in enumerate(bars):
        bar.set_gid(f"bar-{i}")
    tooltips: Tooltips = {
        f"bar-{i}": [f"{label}: {share}"] for i, (label, share) in enumerate(rows)
    }
    _use_percent_scale(axes)
    axes.set_xlim(0, maximum)
    axes.set_ylabel("share")
    axes.grid(axis="x", visible=False)
    axes.set_xlabel(axis)
    return ReportFigure(name, "attention", title, figure, [axis, "share"], rows, tooltips)


def _new_axes() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    return figure, figure.subplots()


def _plot(
    axes: Axes, name: str, points: Mapping[Any, float], tooltips: Sequence[str], **style: Any
) -> Tooltips:
    """Plot a line with marks, and return their tooltips by the line's id in the SVG."""
    gid = f"marks-{name.replace('_', '-')}"
    axes.plot(list(points), list(points.values()), marker="o", gid=gid, **style)
    return {gid: tooltips}


def _add_legend(axes: Axes) -> None:
    """Add a legend above the axes, where it hides no line, with the width of the figure."""
    handles, labels = axes.get_legend_handles_labels()
    axes.figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=3,
        fontsize=8,
        handlelength=1.2,
        columnspacing=1.0,
    )


def _start_at_zero(axes: Axes) -> None:
    """Begin an axis without negative values at 0."""
    if axes.dataLim.y0 >= 0:
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.05 * axes.dataLim.y1))  # no mark is cut
    axes.yaxis.set_major_formatter("{x:,g}")


def _end_at(axes: Axes, maximum: float) -> None:
    """End an axis at the maximum of its values, with room for marks but without a label above."""
    low, high = axes.get_ylim()
    if axes.dataLim.y1 <= maximum < high:
        axes.set_ylim(top=maximum + 0.02 * (maximum - low))


def _use_percent_scale(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")


def _use_logarithmic_scale(axes: Axes, values: Sequence[float]) -> bool:
    """Use a logarithmic scale unless the range is too small for it; return whether it is used."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    finite = [value for value in values if _is_finite(value)]
    if not finite or min(finite) <= 0 or max(finite) < 3 * min(finite):
        return False
    axes.set_yscale("log")
    decades = math.log10(max(finite) / min(finite))
    if decades > 2:
        ticks = [1.0]
    elif decades > 1:
        ticks = [1.0, 2.0, 5.0]
    else:
        ticks = [1.0, 1.5, 2.0, 3.0, 5.0]
    axes.yaxis.set_major_locator(LogLocator(subs=ticks))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    return True


def _sample_history(history: History) -> History:
    """At most `_MAX_TABLE_ROWS` evaluations, including the last one."""
    step = math.ceil(len(history) / _MAX_TABLE_ROWS)
    return history[(len(history) - 1) % step :: step] if history else history


def _bucket_label(low: int, high: int | None) -> str:
    if high is None:
        return f"{low}+"
    return f"{low}–{high}" if low else f"up to {high}"


def _bin_label(bounds: Sequence[int], i: int) -> str:
    if i == len(bounds):
        return f"over {bounds[-1]}"
    return f"up to {bounds[0]}" if i == 0 else f"{bounds[i - 1] + 1}–{bounds[i]}"


def _is_finite(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value)


def _format(value: float | None, curve: _Curve) -> str:
    return f"{value:,.{curve.digits}f}" if _is_finite(value) else ""
