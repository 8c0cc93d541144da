"""Numbers in sentences for the user."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``1 line``, ``2,000 lines``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(count: int) -> str:
    """Bytes in the unit that suits them: ``512 B``, ``3.4 KiB``, ``1.6 GiB``."""
    number, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{count} B" if unit == "B" else f"{number:.1f} {unit}"


def rows_of(told: Mapping[str, Any]) -> str:
    """The rows of each split: ``900 train, 50 test``; of a span that is replayed, how many of all.

    Args:
        told: has ``rows`` by split, and where it is ``replayed`` how many were ``available``.
    """
    rows = told.get("rows", {})
    if told.get("replayed") and "available" in told:
        return f"{rows['train']:,} of {counted(told['available'], 'row')} replayed"
    return ", ".join(f"{count:,} {split}" for split, count in rows.items() if count)


def some_spans(spans: Sequence[Mapping[str, Any]]) -> str:
    """Which spans, in a few words: ``11 to 12 (2), replaying 1 to 10 (10)``.

    Args:
        spans: of each its ``name``, and whether it is only ``replayed``.
    """
    replayed = [span["name"] for span in spans if span.get("replayed")]
    told = _range([span["name"] for span in spans if not span.get("replayed")])
    return f"{told}, replaying {_range(replayed)}" if replayed else told


def _range(names: Sequence[str]) -> str:
    """The first and the last, and how many there are."""
    return "".join(names) if len(names) < 2 else f"{names[0]} to {names[-1]} ({len(names)})"


def figure(value: float | None, scale: float = 100.0) -> str:
    """A metric's value with as many digits as its scale deserves: ``33.13``, ``0.9940``."""
    if value is None or not math.isfinite(value):
        return "undefined"
    return f"{value:.{digits(scale)}f}"


def digits(scale: float) -> int:
    """The digits behind the point of a metric whose best value is ``scale``."""
    return 2 if scale >= 10 else 4
