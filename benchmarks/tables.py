"""Tables as they stand in README.md, and the ratios in them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column tells names, and the others figures."""
    aligned = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, aligned, *rows))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median over the rounds: a machine that others use is not equally fast in all of them."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
