"""Numbers in sentences for the user."""

from __future__ import annotations

import math


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


def figure(value: float | None, scale: float = 100.0) -> str:
    """A metric's value with as many digits as its scale deserves: ``33.13``, ``0.9940``."""
    if value is None or not math.isfinite(value):
        return "undefined"
    return f"{value:.{digits(scale)}f}"


def digits(scale: float) -> int:
    """The digits behind the point of a metric whose best value is ``scale``."""
    return 2 if scale >= 10 else 4
