"""Plots of a measurement over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

from benchmarks.long_run.summary import series

_MEGABYTE = 1e6
# Each panel: its title, and its lines as (process or folder, measure, unit, label).
_PANELS = (
    (
        "Resident memory, MB",
        (
            ("server", "memory", _MEGABYTE, "server"),
            ("scheduler", "memory", _MEGABYTE, "scheduler"),
        ),
    ),
    (
        "Disk, MB",
        (
            ("pipelines", "size", _MEGABYTE, "runs"),
            ("registry", "size", _MEGABYTE, "registry"),
            ("temporary", "size", _MEGABYTE, "temporary files"),
        ),
    ),
    (
        "Open descriptors and threads",
        (
            ("server", "descriptors", 1, "server, descriptors"),
            ("server", "threads", 1, "server, threads"),
            ("scheduler", "descriptors", 1, "scheduler, descriptors"),
        ),
    ),
)
_COLORS = ("#3b6fb6", "#c2652a", "#4b8b5c")


def draw(samples: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw memory, disk, descriptors, latency, and versions with failures, one below the other."""
    matplotlib.rcParams.update({"font.size": 10, "svg.fonttype": "none", "svg.hashsalt": "regard"})
    figure, axes = pyplot.subplots(5, 1, figsize=(8, 13), sharex=True, layout="constrained")
    for axis, (title, lines) in zip(axes, _PANELS, strict=False):
        axis.set_title(title, loc="left")
        for (part, measure, unit, label), color in zip(lines, _COLORS, strict=False):
            axis.plot(*series(samples, part, measure, unit), color=color, label=label, lw=1)
    hours = [sample["hours"] for sample in samples]
    latency, versions = axes[3:]
    latency.set_title("Latency of a sentence in 30 seconds, ms", loc="left")
    for percent, color in zip((50, 99), _COLORS, strict=False):
        values = [sample.get(f"p{percent}", float("nan")) for sample in samples]
        latency.plot(hours, values, color=color, label=f"p{percent}", lw=1)
    latency.set_yscale("log")
    versions.set_title("Spans, versions and failed requests", loc="left")
    failures = 0
    totals = [failures := failures + sample["failures"] for sample in samples]
    newest = [max(sample["served"], default=float("nan")) for sample in samples]
    counts = (("spans", [sample["spans"] for sample in samples]), ("version served", newest))
    for (label, values), color in zip((*counts, ("failed requests", totals)), _COLORS, strict=True):
        versions.plot(hours, values, color=color, label=label, lw=1)
    versions.set_xlabel("hours")
    for axis in axes:
        axis.set_ylim(bottom=None if axis is latency else 0)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
