"""Numbers in sentences for the user."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``1 line``, ``2,000 lines``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
