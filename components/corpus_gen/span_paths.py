"""Where a ``data`` section names spans, and what is wrong with that, without looking at files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.corpus_gen import patterns
from components.corpus_gen.paths import items_of, root_of

Mistake = tuple[tuple[str, ...], str]  # the key, and what is wrong


@dataclass(frozen=True)
class Place:
    """A pattern, and where it stands in the ``data`` section; tables have no sides.

    The same pattern may stand twice in a list, such as that of a source with two references.
    """

    root: str
    split: str
    side: str | None
    pattern: str
    position: int = 0

    @property
    def key(self) -> str:
        """The key of the configuration."""
        return ".".join(filter(None, ("data", self.split, self.side)))


def places(data: Mapping[str, Any]) -> list[Place]:
    """All patterns of a ``data`` section."""
    found = []
    for split in ("train", "eval", "test"):
        value = data.get(split)
        sides = value.items() if isinstance(value, Mapping) else [(None, value)]
        found += [
            Place(root_of(data), split, side, item, position)
            for side, paths in sides
            for position, item in enumerate(items_of(paths or ()))
            if patterns.is_pattern(item)
        ]
    return found


def fixed(value: Any) -> Any:
    """What a split has of files that belong to every run, in the form of ``data.train``."""
    if isinstance(value, Mapping):
        kept = {side: fixed(paths) for side, paths in value.items()}
        return kept if any(kept.values()) else None
    return [item for item in items_of(value) if not patterns.is_pattern(item)] or None


def mistakes(data: Mapping[str, Any]) -> Iterator[Mistake]:
    """What is wrong with the patterns and the section ``spans``, each with its key."""
    given, rule = places(data), data.get("spans") or {}
    for place in given:
        if message := patterns.wrong(place.pattern):
            yield tuple(place.key.split(".")), message
            return
    dated = {patterns.has_date(place.pattern): place for place in given}
    trained = [place for place in given if place.split == "train"]
    if len(dated) > 1:
        path = tuple(dated[False].key.split("."))
        yield path, f"spans are numbers here, and dates in {dated[True].key}; use one of them"
    elif given and not trained:
        path = tuple(given[0].key.split("."))
        yield path, "follows the spans of data.train, which has no placeholder"
    elif not given and any(rule.values()):
        yield ("data", "spans"), "no path in data.train has a placeholder, such as {SPAN}"
    elif rule.get("replay") and not rule.get("window") and "taken" not in rule:
        path = ("data", "spans", "replay")
        yield path, "is of the spans before the window; give data.spans.window too"
    for split in ("train", "eval", "test"):
        if isinstance(data.get(split), Mapping):
            yield from _uneven(split, data[split])
    if given:
        yield from _wrong_bounds(rule, True in dated)
        if rule.get("marker"):
            yield from _wrong_marker(rule["marker"], given)


def _uneven(split: str, sides: Mapping[str, Any]) -> Iterator[Mistake]:
    rows = {side: [patterns.is_pattern(i) for i in items_of(v)] for side, v in sides.items() if v}
    first = next(iter(rows), "")
    for side, row in rows.items():
        if row != rows[first] and len(row) == len(rows[first]):
            bare, other = (side, first) if any(rows[first]) else (first, side)
            path = ("data", split, bare)
            yield path, f"all sides need the placeholders of data.{split}.{other}"


def _wrong_bounds(rule: Mapping[str, Any], dated: bool) -> Iterator[Mistake]:
    named = [("first", rule.get("first")), ("last", rule.get("last"))]
    named += [("without", value) for value in rule.get("without") or ()]
    bounds = {}
    for name, value in named:
        if value is None:
            continue
        try:
            bounds[name] = patterns.number_of(value, dated)
        except ValueError:
            expected = "a date, YYYY-MM-DD," if dated else "a whole number"
            path = ("data", "spans", name)
            yield path, f"{expected} is expected, as in the paths; {value!r} was given"
    if {"first", "last"} <= bounds.keys() and bounds["first"] > bounds["last"]:
        yield ("data", "spans", "first"), "is after data.spans.last"


def _wrong_marker(marker: str, given: Sequence[Place]) -> Iterator[Mistake]:
    path = ("data", "spans", "marker")
    if patterns.is_pattern(marker) and (message := patterns.wrong(marker)):
        yield path, message
        return
    for place in given:
        folder = os.path.dirname(place.pattern)
        if more := sorted(patterns.names(marker) - patterns.names(place.pattern)):
            yield path, f"{place.key} has no {{{more[0]}}}, which {marker} would be named by"
            return
        told = patterns.names(folder) | patterns.names(marker)
        if missing := sorted(patterns.names(place.pattern) - told):
            name = f"{marker}-{{{missing[0]}}}"
            message = f"one {marker} would stand for several spans or versions of {place.key}; "
            yield path, f"{message}put {{{missing[0]}}} into its name, such as {name}"
            return
