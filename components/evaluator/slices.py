"""The parts of the test split that are scored apart: by a feature, a pattern, length, what is new.

What is new to a model: words of what it is asked, and references.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.evaluator.unknown_words import Vocabulary
from components.seen import key
from components.slice_names import (
    LENGTH,
    OOV,
    OTHERS,
    PATTERN,
    SEEN,
    SEEN_NAMES,
    length_names,
    length_ranges,
    share_names,
)
from models.metrics import Rows

_MOST_VALUES = 30


@dataclass(frozen=True)
class Slice:
    """Some of the rows.

    Attributes:
        kind: the feature whose value they share, or ``pattern``, ``length``, ``oov`` or ``seen``.
        name: that value, the pattern's name, or bounds such as ``11-20`` and ``31+``; None: what
            is left of a feature's values.
        rows: their places in the split.
        bounds: of lengths the least and the greatest, which may be None.
    """

    kind: str
    name: str | None
    rows: Sequence[int]
    bounds: tuple[int, int | None] | None = None

    @property
    def value(self) -> str:
        """The name, also of what is left."""
        return OTHERS if self.name is None else self.name

    @property
    def title(self) -> str:
        """How the configuration names it: ``domain=news``."""
        return f"{self.kind}={self.value}"

    def called(self, name: str) -> bool:
        """Whether a name means it: its title, or its kind, which means all of that kind."""
        return name in (self.kind, self.title)

    def to_dict(self) -> dict[str, Any]:
        """The slice as plain JSON values, without its rows but for their number."""
        return {"slice": self.kind, "name": self.name, "rows": len(self.rows)}


def find(
    rows: Rows,
    lengths: Sequence[int] | None,
    asked: Sequence[str],
    vocabulary: Vocabulary | None,
    seen: frozenset[int] | None,
    config: Mapping[str, Any],
) -> list[Slice]:
    """The slices that have rows.

    Args:
        rows: the test split, with the columns that are looked at.
        lengths: of the rows, in the unit of the model's contract; None where there is none.
        asked: the columns of text that the model is given.
        vocabulary: of the train split; None where it is not known.
        seen: the keys of references that the train split has too; None where nobody looked.
        config: the ``evaluation`` section: ``slices``, and ``length_buckets``, the upper bounds.
    """
    wanted = config.get("slices", {})
    found = [one for feature in wanted.get("by", ()) for one in _by_value(rows, feature)]
    found += [
        _by_pattern(rows, name, pattern) for name, pattern in wanted.get("patterns", {}).items()
    ]
    if lengths is not None:
        found += _by_length(lengths, config.get("length_buckets", ()))
    if vocabulary is not None and wanted.get("oov") is not None:
        shares = [
            vocabulary.unknown(texts)
            for texts in zip(*(rows.columns[name] for name in asked), strict=True)
        ]
        found += _by_share(shares, wanted["oov"])
    if seen is not None:
        found += _by_seen(rows, seen)
    return [one for one in found if one.rows]


def _by_value(rows: Rows, feature: str) -> list[Slice]:
    """The most frequent values of a feature, and the rows that have others."""
    values = _texts(rows, feature)
    frequent = sorted(value for value, _ in Counter(values).most_common(_MOST_VALUES))
    found = [Slice(feature, value, _where(values, value.__eq__)) for value in frequent]
    return [*found, Slice(feature, None, _where(values, lambda value: value not in frequent))]


def _by_pattern(rows: Rows, name: str, pattern: Mapping[str, str]) -> Slice:
    search = re.compile(pattern["matches"]).search
    return Slice(PATTERN, name, _where(_texts(rows, pattern["feature"]), search))


def _by_length(lengths: Sequence[int], bounds: Sequence[int]) -> list[Slice]:
    found = []
    for name, (low, high) in zip(length_names(bounds), length_ranges(bounds), strict=True):
        rows = [at for at, n in enumerate(lengths) if low <= n and (high is None or n <= high)]
        found.append(Slice(LENGTH, name, rows, (low, high)))
    return found


def _by_share(shares: Sequence[float], bounds: Sequence[float]) -> list[Slice]:
    places = [sum(share > bound for bound in bounds) for share in shares]
    return [
        Slice(OOV, name, _where(places, number.__eq__))
        for number, name in enumerate(share_names(bounds))
    ]


def _by_seen(rows: Rows, seen: frozenset[int]) -> list[Slice]:
    """The rows of which no reference is in the train split, and those of which one is."""
    known = [any(key(text) in seen for text in wanted) for wanted in rows.references]
    return [
        Slice(SEEN, name, _where(known, bool(number).__eq__))
        for number, name in enumerate(SEEN_NAMES)
    ]


def _texts(rows: Rows, feature: str) -> list[str]:
    """A feature of text, row by row; the one that is no column is the reference."""
    if feature in rows.columns:
        return [text or "" for text in rows.columns[feature]]
    return [wanted[0] for wanted in rows.references]


def _where(values: Sequence[Any], wanted: Callable[[Any], Any]) -> list[int]:
    return [at for at, value in enumerate(values) if wanted(value)]
