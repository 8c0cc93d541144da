"""The pictures of a comparison: a score by source length, and the learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.pictures import COLOURS, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STROKES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D")
FORMATS = ("svg", "png")
Entry = Mapping[str, Any]
Look = tuple[str, Any, str]


def draw(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draws what there is to draw, each picture as SVG and PNG, and returns the files.

    Pictures of an earlier time that can no longer be drawn go.
    """
    models = content["models"]
    looks = looks_of([model["label"] for model in models])
    files: list[Path] = []
    with style({"font.size": 10}):
        metric = score_of(models)
        if metric is not None:
            figure = by_length(models, metric, looks, content["name"])
            files += _save(figure, folder / f"{metric.replace('_', '-')}-by-length")
        if any(model.get("history") for model in models):
            files += _save(curves(models, looks, content["name"]), folder / "learning-curves")
    for kind in FORMATS:
        for name in ("learning-curves", "*-by-length"):
            for old in set(folder.glob(f"{name}.{kind}")) - set(files):
                old.unlink()
    return files


def looks_of(labels: Sequence[str]) -> dict[str, Look]:
    """Colour, stroke and marker of each label.

    Labels that differ in their last part alone, such as ``dot-feed`` and ``dot-nofeed``, share a
    colour and differ in stroke and marker, where that tells all apart.
    """
    families: dict[str, list[str]] = {}
    for label in labels:
        families.setdefault(label.rpartition("-")[0] or label, []).append(label)
    if len(families) <= len(COLOURS) and max(map(len, families.values()), default=0) <= 4:
        places = [(i, j) for i, family in enumerate(families.values()) for j in range(len(family))]
        order = [label for family in families.values() for label in family]
    else:
        order = list(labels)
        places = [(i % len(COLOURS), i // len(COLOURS) % 4) for i in range(len(labels))]
    return {
        label: (COLOURS[colour], STROKES[stroke], MARKERS[stroke])
        for label, (colour, stroke) in zip(order, places, strict=True)
    }


def score_of(models: Sequence[Entry]) -> str | None:
    """The metric whose scores by length are drawn: BLEU where there is one, else the first."""
    for model in models:
        if model.get("by_length") and model.get("metrics"):
            return "bleu" if "bleu" in model["metrics"] else next(iter(model["metrics"]))
    return None


def by_length(
    models: Sequence[Entry], metric: str, looks: Mapping[str, Look], title: str
) -> Figure:
    """A metric by the length of the source (Bahdanau et al. 2015, Figure 2)."""
    from matplotlib.figure import Figure

    done = [model for model in models if model.get("by_length") and model.get("metrics")]
    facts = done[0]["metrics"][metric]
    label, unit = facts.get("label", metric), done[0].get("length_unit", "source pieces")
    bounds = sorted({_bounds(bucket) for model in done for bucket in model["by_length"]})
    rows = {_bounds(bucket): bucket["rows"] for m in done for bucket in m["by_length"]}
    figure = Figure(figsize=(9.5, 5.2), dpi=150, layout="constrained")
    axes = figure.subplots()
    done.sort(key=lambda model: _sort_key(model["metrics"][metric]), reverse=True)
    for model in done:
        points = {_bounds(b): b["candidate"][metric] for b in model["by_length"]}
        places = [i for i, bound in enumerate(bounds) if bound in points]
        colour, stroke, marker = looks[model["label"]]
        value = model["metrics"][metric]["value"]
        axes.plot(
            places,
            [points[bounds[i]] for i in places],
            color=colour,
            linestyle=stroke,
            marker=marker,
            label=f"{value:.{_digits(facts)}f}  {model['label']}",
        )
    axes.set_xticks(
        range(len(bounds)),
        [f"{_span(*bound)}\nn = {rows[bound]:,}" for bound in bounds],
    )
    axes.set_xlabel(f"length of the source ({unit}); n: sentences of the test split")
    axes.set_ylabel(label)
    axes.set_title(f"{title}: {label} by source length", loc="left")
    axes.grid(axis="x", visible=False)
    _legend(axes, f"{label} of all")
    return figure


def curves(models: Sequence[Entry], looks: Mapping[str, Look], title: str) -> Figure:
    """Perplexity on the eval split over training: its steps, and its minutes.

    Where a model has none, the loss of all.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    done = [model for model in models if model.get("history")]
    entries = [entry for model in done for entry in model["history"]]
    measure, digits, what = "perplexity", 2, "perplexity of a piece"
    if any(measure not in entry for entry in entries):
        measure, digits, what = "loss", 4, "loss"
    least = {m["label"]: min(entry[measure] for entry in m["history"]) for m in done}
    done.sort(key=lambda model: least[model["label"]])
    figure = Figure(figsize=(12.5, 5.2), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for model in done:
        label, history = model["label"], model["history"]
        colour, stroke, marker = looks[label]
        values = [entry[measure] for entry in history]
        style = {"color": colour, "linestyle": stroke, "marker": marker}
        # As many markers as can be told apart, whatever the number of evaluations.
        style["markevery"] = max(1, len(history) // 8)
        left.plot([entry["step"] for entry in history], values, **style)
        minutes = [entry["seconds"] / 60 for entry in history]
        right.plot(minutes, values, label=f"{least[label]:.{digits}f}  {label}", **style)
    left.set_yscale("log")
    # A power of ten in the middle of an axis from 5 to 60 would be its only number.
    left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    left.yaxis.set_major_locator(_steps([entry[measure] for entry in entries]))
    left.yaxis.set_minor_formatter(NullFormatter())
    left.set_xlabel("training, steps")
    right.set_xlabel("training, minutes")
    left.set_ylabel(f"{what}, eval split (log scale; lower is better)")
    left.set_title(f"{title}: learning curves", loc="left")
    _legend(right, f"least {measure}")
    return figure


def _steps(values: Sequence[float]) -> Any:
    """Round numbers that a logarithmic axis from 5 to 60, or from 5 to 6,000, has enough of."""
    from matplotlib.ticker import LogLocator

    wide = max(values) > 100 * min(values)
    return LogLocator(subs=(1.0, 2.0, 5.0) if wide else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))


def _sort_key(metric: Entry) -> float:
    return metric["value"] if metric.get("higher_is_better", True) else -metric["value"]


def _bounds(bucket: Entry) -> tuple[int, float]:
    return bucket["from"], float("inf") if bucket["to"] is None else bucket["to"]


def _span(lower: int, upper: float) -> str:
    if upper == float("inf"):
        return f"{lower} or more"
    return f"up to {upper:.0f}" if lower == 0 else f"{lower}–{upper:.0f}"


def _digits(metric: Entry) -> int:
    return 1 if metric.get("scale", 100.0) >= 10 else 3


def _legend(axes: Axes, title: str) -> None:
    """Beside the axes, in the order of the results, so that it can be read along the lines."""
    axes.legend(
        loc="center left", bbox_to_anchor=(1.01, 0.5), title=title, handlelength=3.4,
        alignment="left", borderaxespad=0.0,
    )  # fmt: skip


def _save(figure: Figure, stem: Path) -> list[Path]:
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in FORMATS]
    for path in files:
        save(figure, path)
    return files
