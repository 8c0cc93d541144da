"""The paths of the section ``data``, and the rules of the spans that they name."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from regard.components.data import span_patterns
from regard.components.data.sources import path_list
from regard.components.settings.data import DataConfig, SpansConfig
from regard.models.settings.base import Problem


@dataclass(frozen=True)
class PatternLocation:
    """A path, mostly a pattern, and its location in the section ``data``.

    A list may hold the same pattern twice, such as that of a source with two references.

    Attributes:
        root: the folder that it is relative to.
        split: its split.
        side: its side; None for files that hold all sides.
        pattern: the path with placeholders.
        position: its position in the list of paths.
    """

    root: str
    split: str
    side: str | None
    pattern: str
    position: int = 0

    @property
    def path(self) -> tuple[str, ...]:
        """The keys of the configuration, the outermost first."""
        return ("data", self.split) if self.side is None else ("data", self.split, self.side)

    @property
    def key(self) -> str:
        """The key of the configuration, for example ``data.train.source``."""
        return ".".join(self.path)


def pattern_locations(data: DataConfig) -> list[PatternLocation]:
    """Return all patterns of the section."""
    locations = path_locations(data)
    return [location for location in locations if span_patterns.is_pattern(location.pattern)]


def path_locations(data: DataConfig) -> list[PatternLocation]:
    """Return all paths of the section."""
    locations = []
    for split, files in data.files_by_split().items():
        sides = files.items() if isinstance(files, dict) else [(None, files)]
        locations += [
            PatternLocation(data.root, split, side, path, position)
            for side, paths in sides
            for position, path in enumerate(path_list(paths))
        ]
    return locations


def validate_spans(data: DataConfig) -> Iterator[Problem]:
    """Yield patterns, dates and rules of spans that cannot work together."""
    locations, rules = pattern_locations(data), data.spans
    for location in locations:
        if message := span_patterns.pattern_error(location.pattern):
            yield Problem(location.path, message)
            return
    dated = {span_patterns.has_date(location.pattern): location for location in locations}
    if len(dated) > 1:
        message = f"spans are numbers here, and dates in {dated[True].key}; use one of them"
        yield Problem(dated[False].path, message)
    elif locations and not any(location.split == "train" for location in locations):
        yield Problem(locations[0].path, "needs a placeholder in data.train as well")
    elif not locations and any(dict(rules).values()):
        message = "no path in data.train has a placeholder, for example {SPAN}"
        yield Problem(("data", "spans"), message)
    elif rules.replay and not rules.window:
        message = "replays spans before the window; set data.spans.window as well"
        yield Problem(("data", "spans", "replay"), message)
    for split, files in data.files_by_split().items():
        if isinstance(files, dict):
            yield from _validate_sides(split, files)
    if locations:
        yield from _validate_bounds(rules, True in dated)
        if rules.marker:
            yield from _validate_marker(rules.marker, locations)


def _validate_sides(split: str, files: Mapping[str, str | list[str]]) -> Iterator[Problem]:
    """All sides need a placeholder at the same positions of their lists."""
    flags = {
        side: list(map(span_patterns.is_pattern, path_list(paths))) for side, paths in files.items()
    }
    first = next(iter(flags))
    for side, row in flags.items():
        if row != flags[first] and len(row) == len(flags[first]):
            fixed, other = (side, first) if any(flags[first]) else (first, side)
            message = f"needs the placeholders of data.{split}.{other} as well"
            yield Problem(("data", split, fixed), message)


def _validate_bounds(rules: SpansConfig, dated: bool) -> Iterator[Problem]:
    values = [("first", rules.first), ("last", rules.last)]
    bounds = {}
    for name, value in [*values, *(("exclude", value) for value in rules.exclude)]:
        if value is None:
            continue
        try:
            bounds[name] = span_patterns.span_number(value, dated)
        except ValueError:
            expected = "a date, YYYY-MM-DD," if dated else "a whole number"
            message = f"{expected} is expected, as in the paths; got {value!r}"
            yield Problem(("data", "spans", name), message)
    if {"first", "last"} <= bounds.keys() and bounds["first"] > bounds["last"]:
        yield Problem(("data", "spans", "first"), "is after data.spans.last")


def _validate_marker(marker: str, locations: Sequence[PatternLocation]) -> Iterator[Problem]:
    path = ("data", "spans", "marker")
    if span_patterns.is_pattern(marker) and (message := span_patterns.pattern_error(marker)):
        yield Problem(path, message)
        return
    in_marker = span_patterns.placeholders(marker)
    for location in locations:
        names = span_patterns.placeholders(location.pattern)
        in_folder = span_patterns.placeholders(os.path.dirname(location.pattern))
        if unknown := sorted(in_marker - names):
            message = f"{location.key} has no {{{unknown[0]}}} to fill in {marker}"
        elif missing := sorted(names - in_folder - in_marker):
            message = f"one {marker} would mark several spans or versions of {location.key}; "
            message += f"add {{{missing[0]}}} to its name, for example {marker}-{{{missing[0]}}}"
        else:
            continue
        yield Problem(path, message)
        return
