"""Tables of a measurement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.markdown_table import format_table

_MEGABYTE = 1e6
# The first part of a measurement, in which caches fill, does not count for the growth.
_WARM_UP = 0.25
# What is listed: the process or folder, the measure, its name and its unit.
SERIES = (
    ("server", "memory", "server, memory, MB", _MEGABYTE),
    ("server", "descriptors", "server, descriptors", 1),
    ("server", "threads", "server, threads", 1),
    ("scheduler", "memory", "scheduler, memory, MB", _MEGABYTE),
    ("scheduler", "descriptors", "scheduler, descriptors", 1),
    ("registry", "size", "registry, MB", _MEGABYTE),
    ("pipelines", "size", "runs with outputs and metadata, MB", _MEGABYTE),
    ("pipelines", "files", "files of the runs", 1),
    ("temporary", "size", "temporary files, MB", _MEGABYTE),
    ("temporary", "entries", "entries of the temporary folder", 1),
)


def series(
    samples: Sequence[dict[str, Any]], part: str, measure: str, unit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the hours and the values of a measure, without the samples that lack it."""
    pairs = [(x["hours"], x[part][measure] / unit) for x in samples if measure in x[part]]
    hours, values = np.array(pairs).reshape(-1, 2).T
    return hours, values


def growth(hours: np.ndarray, values: np.ndarray) -> float:
    """Return the slope per hour of a line through the values after the warm-up (least squares)."""
    late = hours >= hours[0] + _WARM_UP * (hours[-1] - hours[0])
    if len(set(hours[late])) < 2:
        return 0.0
    return float(np.polyfit(hours[late], values[late], 1)[0])


def summarize(samples: Sequence[dict[str, Any]]) -> str:
    """Return Markdown: the failures, what happened, and each measure over time."""
    last = samples[-1]
    requests = sum(sample["requests"] for sample in samples)
    failures = sum(sample["failures"] for sample in samples)
    errors = sorted({error for sample in samples for error in sample["errors"]})
    statuses: dict[str, str] = {}
    for sample in samples:
        statuses |= sample["runs"]
    outcomes = ", ".join(f"{n} {status}" for status, n in Counter(statuses.values()).items())
    served = sorted({version for sample in samples for version in sample["served"]})
    lines = [
        f"{last['hours']:.1f} hours, {last['spans']} spans, {last['kills']} kills of the scheduler,"
        f" version {max(last['versions'])} is the newest, {len(served)} versions were seen served.",
        f"{requests:,} requests, {failures} failed. {'; '.join(errors)}".rstrip(),
        f"{len(statuses)} runs: {outcomes}; {len(last['runs'])} are kept.",
        "",
    ]
    rows = []
    for part, measure, name, unit in SERIES:
        hours, values = series(samples, part, measure, unit)
        if len(values):
            numbers = (values[0], np.median(values), values.max(), values[-1])
            rows.append((name, *(f"{x:,.0f}" for x in numbers), f"{growth(hours, values):+.2f}"))
    header = ("", "first", "median", "maximum", "last", "per hour after the first quarter")
    return "\n".join([*lines, format_table(header, rows)])
