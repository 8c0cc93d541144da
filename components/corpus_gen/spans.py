"""Which spans of a growing corpus a run takes, decided once, before anything is read.

A span is a part of the corpus that arrives at a time, such as a day's; ``patterns`` says how paths
name it. All patterns of a ``data`` section, of every split and every side, tell of the same spans:
a span is taken when each of them has a file of it, in the newest version of which that is so.
Files without a placeholder belong to every run, such as a frozen test set.

A span that lacks a file while no later one is whole is still being written: it is left out, and a
note says so. Any other span that lacks one is a mistake. With a marker, what the writer of a span
puts beside its files at the end, only that counts: a span without it is left out wherever it
stands, and one with it must be whole.

``settled`` writes what it has found into the section, so that the key of CorpusGen's cache and its
work are of the same files, even if others arrive in between.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from components.corpus_gen import patterns
from components.corpus_gen.paths import items_of, listing, root_of
from components.corpus_gen.patterns import Found
from components.errors import UserError
from components.words import counted

# What rows carry as their span, beside its name: those of files that belong to every run.
FEATURE, FIXED = "span", "fixed"
_SHOWN = 5

Files = dict[int, dict[int | None, list[Found]]]  # by span and version


@dataclass(frozen=True)
class Place:
    """A pattern, and where it stands in the ``data`` section; tables have no sides."""

    root: str
    split: str
    side: str | None
    pattern: str

    @property
    def key(self) -> str:
        """The key of the configuration."""
        return ".".join(filter(None, ("data", self.split, self.side)))


class Lack(NamedTuple):
    """Why a version of a span is not whole; ``unfinished`` where its marker is not there yet."""

    key: str
    text: str
    unfinished: bool = False


def places(data: Mapping[str, Any]) -> list[Place]:
    """All patterns of a ``data`` section."""
    found = []
    for split in ("train", "eval", "test"):
        value = data.get(split)
        sides = value.items() if isinstance(value, Mapping) else [(None, value)]
        found += [
            Place(root_of(data), split, side, item)
            for side, paths in sides
            for item in items_of(paths or ())
            if patterns.is_pattern(item)
        ]
    return found


def fixed(value: Any) -> Any:
    """What a split has of files that belong to every run, in the form of ``data.train``."""
    if isinstance(value, Mapping):
        kept = {side: fixed(paths) for side, paths in value.items()}
        return kept if any(kept.values()) else None
    return [item for item in items_of(value) if not patterns.is_pattern(item)] or None


def mistakes(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
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
    for split in ("train", "eval", "test"):
        if isinstance(data.get(split), Mapping):
            yield from _uneven(split, data[split])
    if given:
        yield from _wrong_bounds(rule, True in dated)
        if rule.get("marker"):
            yield from _wrong_marker(rule["marker"], given)


def _uneven(split: str, sides: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    rows = {side: [patterns.is_pattern(i) for i in items_of(v)] for side, v in sides.items() if v}
    first = next(iter(rows), "")
    for side, row in rows.items():
        if row != rows[first] and len(row) == len(rows[first]):
            bare, other = (side, first) if any(rows[first]) else (first, side)
            path = ("data", split, bare)
            yield path, f"all sides need the placeholders of data.{split}.{other}"


def _wrong_bounds(rule: Mapping[str, Any], dated: bool) -> Iterator[tuple[tuple[str, ...], str]]:
    bounds = {}
    for name in ("first", "last"):
        value = rule.get(name)
        if value is None:
            continue
        try:
            bounds[name] = patterns.number_of(value, dated)
        except ValueError:
            expected = "a date, YYYY-MM-DD," if dated else "a whole number"
            path = ("data", "spans", name)
            yield path, f"{expected} is expected, as in the paths; {value!r} was given"
    if len(bounds) == 2 and bounds["first"] > bounds["last"]:
        yield ("data", "spans", "first"), "is after data.spans.last"


def _wrong_marker(marker: str, given: Sequence[Place]) -> Iterator[tuple[tuple[str, ...], str]]:
    path = ("data", "spans", "marker")
    if patterns.is_pattern(marker) and (message := patterns.wrong(marker)):
        yield path, message
        return
    for place in given:
        folder = os.path.dirname(place.pattern)
        told = patterns.names(folder) | patterns.names(marker)
        if missing := sorted(patterns.names(place.pattern) - told):
            name = f"{marker}-{{{missing[0]}}}"
            message = f"one {marker} would stand for several spans or versions of {place.key}; "
            yield path, f"{message}put {{{missing[0]}}} into its name, such as {name}"
            return


def settled(data: Mapping[str, Any], notes: list[str] | None = None) -> dict[str, Any]:
    """The section with the spans that are taken, in ``spans.taken``, oldest first.

    Of each its ``span`` (number), ``name``, ``version`` and ``files`` by split, in the form of
    ``data.train``. A section without patterns loses ``spans``, and a settled one stays as it is.

    Args:
        data: the ``data`` section.
        notes: gets a sentence on each span that is left out, and on gaps.

    Raises:
        UserError: a pattern is wrong or no file fits it, or a span lacks files.
    """
    for path, message in mistakes(data):
        raise UserError(message, where=".".join(path))
    rule, given = data.get("spans") or {}, places(data)
    if not given:
        return {key: value for key, value in data.items() if key != "spans"}
    if "taken" in rule:
        return dict(data)
    found = {place: _files(place) for place in given}
    told: list[str] = [] if notes is None else notes
    taken = [
        {
            "span": number,
            "name": _any(found, number).name,
            "version": version,
            "files": _of(found, number, version),
        }
        for number, version in _choose(found, rule, told)
    ]
    _note_gaps(taken, given[0], told)
    kept = {"test_share": rule.get("test_share") or 0.0, "taken": taken}
    return {**data, "spans": kept}


def _files(place: Place) -> Files:
    """The files that fit a pattern."""
    found: Files = {}
    for file in patterns.find(place.root, place.pattern, place.key):
        alike = found.setdefault(file.span, {}).setdefault(file.version, [])
        if alike and alike[0].written != file.written:
            raise UserError(
                f"{alike[0].path} and {file.path} are both span {file.name}"
                + (f", version {file.version}" if file.version is not None else ""),
                where=place.key,
                remedy="Take one of them away, or give the numbers a width, such as {SPAN:3}.",
            )
        alike.append(file)
    if not found:
        path = os.path.join(place.root, place.pattern)
        folders = path.split(os.sep)
        first = next(i for i, part in enumerate(folders) if patterns.is_pattern(part))
        remedy = listing(os.sep.join(folders[: first + 1]))
        raise UserError(f"no file fits {path}", where=place.key, remedy=remedy)
    return found


def _choose(
    found: Mapping[Place, Files], rule: Mapping[str, Any], notes: list[str]
) -> list[tuple[int, int | None]]:
    """The spans that are taken with their versions."""
    whole: dict[int, int | None] = {}
    lacks: list[tuple[int, int | None, Lack]] = []
    for number in _between(found, rule):
        for version in _versions(found, number):
            if (lack := _lack(found, number, version, rule.get("marker"))) is None:
                whole[number] = version
                break
            lacks.append((number, version, lack))
    chosen = sorted(whole)[-(rule.get("window") or len(whole)) :]
    for number, version, lack in lacks:
        told = _called(found, number, version)
        may_come = lack.unfinished
        if not rule.get("marker") and chosen:
            may_come = number in whole or number > chosen[-1]
        if not chosen or (not may_come and number > chosen[0]):
            raise UserError(
                f"{told} is not whole: {lack.text}",
                where=lack.key,
                remedy="Add what is missing, take the span's other files away, or leave it out "
                "with data.spans.first or data.spans.last.",
            )
        if number >= chosen[0]:
            instead = f"; version {whole[number]} is taken" if number in whole else ""
            notes.append(f"{told} is left out: {lack.text}{instead}")
    return [(number, whole[number]) for number in chosen]


def _between(found: Mapping[Place, Files], rule: Mapping[str, Any]) -> list[int]:
    """The spans that any pattern tells of, from ``first`` to ``last``."""
    dated = any(patterns.has_date(place.pattern) for place in found)
    numbers = sorted({number for files in found.values() for number in files})
    kept, names = numbers, [_any(found, number).name for number in (numbers[0], numbers[-1])]
    if rule.get("first") is not None:
        kept = [n for n in kept if n >= patterns.number_of(rule["first"], dated)]
    if rule.get("last") is not None:
        kept = [n for n in kept if n <= patterns.number_of(rule["last"], dated)]
    if not kept:
        raise UserError(
            f"leaves none of the {counted(len(numbers), 'span')}, {names[0]} to {names[1]}",
            where=f"data.spans.{'first' if rule.get('first') is not None else 'last'}",
            remedy="Give bounds that spans lie between.",
        )
    return kept


def _versions(found: Mapping[Place, Files], number: int) -> list[int | None]:
    """The versions of a span, the newest first; None alone where no pattern tells any."""
    told = {version for files in found.values() for version in files.get(number, ())}
    return [*sorted((v for v in told if v is not None), reverse=True)] or [None]


def _lack(
    found: Mapping[Place, Files], number: int, version: int | None, marker: str | None
) -> Lack | None:
    """What a version of a span has not; None where it is whole."""
    there = {place: _fitting(files, number, version) for place, files in found.items()}
    for place, files in there.items() if marker else ():
        for file in files:
            path = os.path.join(os.path.dirname(file.path), patterns.filled(marker or "", file))
            if not os.path.isfile(path):
                return Lack(place.key, f"{path} is not there", unfinished=True)
    example = next(files[0] for files in there.values() if files)
    for place, files in there.items():
        if not files:
            path = os.path.join(place.root, patterns.filled(place.pattern, example))
            return Lack(place.key, f"{path} is not there")
    return None


def _fitting(files: Files, number: int, version: int | None) -> list[Found]:
    """The files of one version of a span; a pattern that tells none has the same for all."""
    versions = files.get(number, {})
    return versions.get(version) or versions.get(None, [])


def _of(found: Mapping[Place, Files], number: int, version: int | None) -> dict[str, Any]:
    """The files of a version of a span by split, in the form of ``data.train``."""
    by_split: dict[str, Any] = {}
    for place, files in found.items():
        paths = [file.path for file in _fitting(files, number, version)]
        if place.side is None:
            by_split.setdefault(place.split, []).extend(paths)
        else:
            by_split.setdefault(place.split, {}).setdefault(place.side, []).extend(paths)
    return by_split


def _any(found: Mapping[Place, Files], number: int) -> Found:
    """Some file of a span."""
    versions = next(files[number] for files in found.values() if number in files)
    return next(iter(versions.values()))[0]


def _called(found: Mapping[Place, Files], number: int, version: int | None) -> str:
    name = f"span {_any(found, number).name}"
    return name if version is None else f"version {version} of {name}"


def _note_gaps(taken: Sequence[Mapping[str, Any]], place: Place, notes: list[str]) -> None:
    """Says which numbers have no span between the first and the last one that is taken."""
    numbers = {one["span"] for one in taken}
    missing = [n for n in range(min(numbers), max(numbers) + 1) if n not in numbers]
    if not missing:
        return
    dated = patterns.has_date(place.pattern)
    names = [patterns.name_of(number, dated) for number in missing[:_SHOWN]]
    more = f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
    noun = "span is" if len(missing) == 1 else "spans are"
    between = f"between {taken[0]['name']} and {taken[-1]['name']}"
    notes.append(f"{len(missing):,} {noun} missing {between}: {', '.join(names)}{more}")
