"""Markdown tables, and ratios of measurements."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table with names in the first column and numbers in the others."""
    aligned = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, aligned, *rows))


def median_ratio(values: Sequence[float], baseline: Sequence[float]) -> float:
    """The median ratio over the rounds, since a shared machine varies in speed between them."""
    return statistics.median(value / base for value, base in zip(values, baseline, strict=True))
