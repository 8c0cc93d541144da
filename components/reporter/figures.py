"""The pictures of a report, each with its numbers as a table."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from components.pictures import BLUE, GREY, ORANGE
from components.reporter import words
from components.reporter.attention import Attention
from components.reporter.facts import Facts
from components.words import digits as digits_of
from components.words import figure as written
from models.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_SIZE = (4.4, 2.7)  # inches
_SPLITS = {"train": BLUE, "eval": ORANGE, "test": GREY}
_MOST_ROWS = 40  # of a table


@dataclasses.dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        name: of its file, without the ending.
        section: of the report: ``scores``, ``training``, ``data`` or ``attention``.
        title: what it shows.
        figure: the drawing.
        header: of the table with the same numbers.
        rows: of that table.
        told: by the ``gid`` of a drawn part, what its marks say when one points at them.
    """

    name: str
    section: str
    title: str
    figure: Figure
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    told: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)


def draw(facts: Facts, attention: Attention | None) -> list[Picture]:
    """All pictures that there is something for; call it inside `components.pictures.style`."""
    history = facts.training.get("history", [])
    pictures = [_by_length(facts)] if facts.by_length and facts.metrics else []
    pictures += [_curve(history, curve) for curve in _curves(history)]
    lengths = facts.checks.get("lengths", {})
    pictures += [_lengths(name, of) for name, of in lengths.items()]
    if attention is not None:
        pictures += [_entropy(attention)]
        pictures += [_coverage(attention)] if attention.coverage is not None else []
    return pictures


@dataclasses.dataclass(frozen=True)
class _Curve:
    """One quantity over the steps of a training."""

    name: str
    title: str
    keys: Mapping[str, str]  # of the history's entries, and what they are called
    digits: int
    logarithmic: bool = False


def _curves(history: Sequence[Mapping[str, Any]]) -> list[_Curve]:
    """Those that the training has measured."""
    measured = {key for entry in history for key in entry}
    found = [
        _Curve("loss", "Loss", {"train_loss": "train", "loss": "eval"}, 4, logarithmic=True),
        _Curve("perplexity", "Perplexity, eval split", {"perplexity": "eval"}, 3, logarithmic=True),
        *(
            _Curve(name, f"{kind.label}, eval split", {name: "eval"}, digits_of(kind.scale))
            for name, kind in METRICS.items()
            if name != "perplexity"
        ),
        _Curve("learning-rate", "Learning rate", {"learning_rate": "rate"}, 6),
        _Curve("speed", "Speed, units a second", {"tokens_per_second": "units/s"}, 0),
    ]
    return [curve for curve in found if measured.issuperset(curve.keys)]


def _curve(history: Sequence[Mapping[str, Any]], curve: _Curve) -> Picture:
    figure, axes = _axes()
    colours = dict(zip(curve.keys, (BLUE, ORANGE), strict=False))
    told = {}
    for key, label in curve.keys.items():
        points = [(entry["step"], entry[key]) for entry in history if _finite(entry.get(key))]
        (line,) = axes.plot(
            [step for step, _ in points],
            [value for _, value in points],
            color=colours[key],
            marker="o",
            markersize=3.5 if len(points) < 40 else 2,
            label=label,
        )
        told[_named(line, key)] = [
            f"step {step:,}: {label} {value:,.{curve.digits}f}" for step, value in points
        ]
    if curve.logarithmic:
        _logarithmic(axes, [entry[key] for entry in history for key in curve.keys if key in entry])
    elif curve.name in ("learning-rate", "speed"):
        axes.set_ylim(bottom=0)
    axes.set_xlabel("steps")
    if len(curve.keys) > 1:
        axes.legend()
    rows = [
        [f"{entry['step']:,}", *(_told(entry.get(key), curve.digits) for key in curve.keys)]
        for entry in _some(history)
    ]
    header = ["step", *curve.keys.values()]
    return Picture(curve.name, "training", curve.title, figure, header, rows, told)


def _by_length(facts: Facts) -> Picture:
    """The first metric of the run by the length of the input (Bahdanau et al. 2015, figure 2)."""
    name, metric = next(iter(facts.metrics["metrics"].items()))
    buckets, unit = facts.by_length["buckets"], facts.by_length["unit"]
    scale = metric["scale"]
    labels = [span(bucket) for bucket in buckets]
    figure, axes = _axes()
    told, header = {}, [f"length ({unit})", "rows"]
    columns = []
    models = [("candidate", "this model", BLUE), ("production", "in production", GREY)]
    for model, label, colour in models:
        values = [bucket.get(model, {}).get(name) for bucket in buckets]
        if not any(map(_finite, values)):
            continue
        numbers = [value if _finite(value) else math.nan for value in values]
        (line,) = axes.plot(range(len(buckets)), numbers, color=colour, marker="o", label=label)
        told[_named(line, model)] = [
            f"{at}: {metric['label']} {written(value, scale)}, {bucket['rows']:,} rows"
            for at, value, bucket in zip(labels, numbers, buckets, strict=True)
            if _finite(value)
        ]
        header.append(label)
        columns.append([written(value, scale) for value in numbers])
    axes.set_xticks(range(len(buckets)), labels)
    axes.set_xlabel(f"length of the input, {unit}")
    axes.set_ylabel(metric["label"])
    axes.margins(y=0.15)
    if len(columns) > 1:
        axes.legend()
    rows = [
        [label, f"{bucket['rows']:,}", *values]
        for label, bucket, *values in zip(labels, buckets, *columns, strict=True)
    ]
    title = f"{metric['label']} by the length of the input"
    return Picture("by-length", "scores", title, figure, header, rows, told)


def _lengths(name: str, found: Mapping[str, Any]) -> Picture:
    """How long the rows of each split are."""
    bounds, splits = found["bounds"], found["splits"]
    used = [i for i in range(len(bounds) + 1) if any(counts[i] for counts in splits.values())]
    first, last = (used[0], used[-1]) if used else (0, 0)
    places = range(first, last + 1)
    labels = [_bin(bounds, i) for i in places]
    figure, axes = _axes()
    told = {}
    for split, counts in splits.items():
        total = sum(counts)
        if not total:
            continue
        shares = [counts[i] / total for i in places]
        (line,) = axes.plot(
            range(len(shares)), shares, color=_SPLITS.get(split, GREY), marker="o", markersize=3,
            label=f"{split} ({total:,})",
        )  # fmt: skip
        told[_named(line, split)] = [
            f"{split}, {label}: {counts[i]:,} rows ({words.share(value)})"
            for i, label, value in zip(places, labels, shares, strict=True)
        ]
    step = max(1, len(labels) // 6)
    axes.set_xticks(range(0, len(labels), step), [_edge(bounds, i) for i in places][::step])
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"{found['unit']}s, up to")
    axes.legend()
    rows = [
        [label, *(f"{counts[i]:,}" for counts in splits.values())]
        for i, label in zip(places, labels, strict=True)
    ]
    title = f"Lengths of {name}"
    header = [f"{found['unit']}s", *splits]
    return Picture(f"lengths-{name.replace('_', '-')}", "data", title, figure, header, rows, told)


def _entropy(attention: Attention) -> Picture:
    title = "How spread the look of a step is"
    axis = "entropy, as a share of even attention's"
    return _histogram("entropy", title, axis, attention.entropy, 1.0)


def _coverage(attention: Attention) -> Picture:
    title = f"How much the {attention.pieces} of the input were looked at"
    axis = "sum of the weights of all steps"
    return _histogram("coverage", title, axis, attention.coverage, 3.0)


def _histogram(name: str, title: str, axis: str, values: Any, high: float) -> Picture:
    """Shares of some numbers from 0 on; what is over ``high`` is in the last bar."""
    import numpy as np

    edges = np.linspace(0.0, high, 21)
    counts, _ = np.histogram(np.clip(values, 0.0, high), edges)
    shares = counts / max(counts.sum(), 1)
    figure, axes = _axes()
    bars = axes.bar(edges[:-1], shares, width=np.diff(edges), align="edge", color=BLUE)
    labels = [f"{low:.2f} to {up:.2f}" for low, up in itertools.pairwise(edges)]
    if np.max(values, initial=0.0) > high:
        labels[-1] = f"over {edges[-2]:.2f}"
    told = {}
    for i, bar in enumerate(bars):
        bar.set_gid(f"bar-{i}")
        bar.set_edgecolor("white")
        told[f"bar-{i}"] = [f"{labels[i]}: {words.share(float(shares[i]))}"]
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    axes.set_xlim(0, high)
    axes.grid(axis="x", visible=False)
    axes.set_xlabel(axis)
    rows = [[label, words.share(float(value))] for label, value in zip(labels, shares, strict=True)]
    return Picture(name, "attention", title, figure, [axis, "share"], rows, told)


def span(bucket: Mapping[str, Any]) -> str:
    """A bucket of lengths in words."""
    if bucket["to"] is None:
        return f"{bucket['from']} or more"
    return f"up to {bucket['to']}" if not bucket["from"] else f"{bucket['from']}–{bucket['to']}"


def _axes() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    return figure, figure.subplots()


def _named(line: Line2D, name: str) -> str:
    """Gives a line a name by which its marks are found again."""
    gid = f"marks-{name.replace('_', '-')}"
    line.set_gid(gid)
    return gid


def _logarithmic(axes: Axes, values: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    found = [value for value in values if _finite(value)]
    if not found or min(found) <= 0 or max(found) < 3 * min(found):
        return  # powers of ten would be too few numbers for the axis
    axes.set_yscale("log")
    wide = max(found) > 100 * min(found)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 1.5, 2.0, 3.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _some(history: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """As many of the evaluations as a table can hold, the last among them."""
    step = math.ceil(len(history) / _MOST_ROWS)
    return history[(len(history) - 1) % step :: step] if history else history


def _bin(bounds: Sequence[float], i: int) -> str:
    if i == len(bounds):
        return f"over {bounds[-1]}"
    return f"up to {bounds[0]}" if i == 0 else f"{bounds[i - 1] + 1}–{bounds[i]}"


def _edge(bounds: Sequence[float], i: int) -> str:
    return f">{bounds[-1]}" if i == len(bounds) else f"{bounds[i]}"


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _told(value: Any, digits: int) -> str:
    return f"{value:,.{digits}f}" if _finite(value) else ""
