"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest_matches(
    name: object, choices: Iterable[str], n: int = 1, cutoff: float = 0.6
) -> list[str]:
    """Return the choices that are spelt most like a name, the closest first.

    Args:
        name: The misspelt name; case does not matter.
        choices: The valid names.
        n: The maximum number of matches.
        cutoff: The minimum similarity, from 0 to 1.
    """
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(str(name).lower(), by_lower, n, cutoff)
    return [by_lower[name] for name in near]


def did_you_mean(name: object, choices: Iterable[str], n: int = 1) -> str:
    """Return ``Did you mean X? `` with a trailing space, or an empty text without a close match."""
    matches = closest_matches(name, choices, n)
    return f"Did you mean {' or '.join(matches)}? " if matches else ""
