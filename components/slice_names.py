"""What the slices of a test split are called, where the Evaluator and the configuration name them.

A slice's title is its kind and its name: ``domain=news``, ``pattern=questions``, ``length=11-20``,
``oov=0.1+``, ``seen=no``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

LENGTH, OOV, PATTERN, SEEN = "length", "oov", "pattern", "seen"
# Of rows whose answer is not in the training split, and of those whose is.
SEEN_NAMES = ("no", "yes")
# What is left of a feature's values, beside those that are slices of their own.
OTHERS = "(others)"


def length_ranges(bounds: Sequence[int]) -> list[tuple[int, int | None]]:
    """The least and the greatest length of each slice, by the upper bounds."""
    return list(zip([0, *(bound + 1 for bound in bounds)], [*bounds, None], strict=True))


def length_names(bounds: Sequence[int]) -> list[str]:
    """What slices by length are called: ``0-10``, ``11-20``, ``21+``."""
    return [f"{low}+" if high is None else f"{low}-{high}" for low, high in length_ranges(bounds)]


def share_names(bounds: Sequence[float]) -> list[str]:
    """What slices by a share are called: ``0``, ``0-0.1``, ``0.1+``, and after ``0`` alone ``>0``.

    Each has its upper bound but not its lower one, except for a share of 0.
    """
    told = [repr(float(bound)).removesuffix(".0") for bound in bounds]
    first = f"0-{told[0]}" if bounds[0] else "0"
    last = f"{told[-1]}+" if bounds[-1] else ">0"
    return [first, *(f"{low}-{high}" for low, high in pairwise(told)), last]
