"""Several references for the same input, in files that have one a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from components.corpus_gen.splits import canonical
from models.tasks.features import Feature


def joined(
    rows: Iterable[tuple[int, Sequence[Any]]], features: Sequence[Feature]
) -> Iterator[tuple[int, Sequence[Any]]]:
    """Rows with the same inputs become one, with what they hold of each feature with ``several``.

    It has the line and all other values of the first of them, and rows keep the order in which
    their inputs first appeared. All rows of a file are held: its last row may belong to its first.
    """
    alike = [i for i, f in enumerate(features) if f.role == "input" and not f.several]
    several = [i for i, f in enumerate(features) if f.several]
    found: dict[tuple[str | None, ...], tuple[int, list[Any]]] = {}
    for number, values in rows:
        key = tuple(canonical(values[i]) for i in alike)
        if key not in found:
            found[key] = number, list(values)
            continue
        first = found[key][1]
        for i in several:
            if values[i] is not None:
                first[i] = [*(first[i] or ()), *values[i]]
    yield from found.values()
