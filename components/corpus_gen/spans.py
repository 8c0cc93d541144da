"""Which spans of a growing corpus a run takes, decided once, before anything is read.

A span is a part of the corpus that arrives at a time, such as a day's; ``patterns`` says how paths
name it. All patterns of a ``data`` section, of every split and every side, tell of the same spans:
a span is taken when each of them has a file of it, in the newest version of which that is so.
Files without a placeholder belong to every run, such as a frozen test set. Where ``replay`` asks
for rows of the spans before the window, those spans are taken too, and marked as ``replayed``.

A span that lacks a file while no later one is whole is still being written: it is left out, and a
note says so. Any other span that lacks one is a mistake. With a marker, what the writer of a span
puts beside its files at the end, only that counts: a span without it is left out wherever it
stands, and one with it must be whole.

``settled`` writes what it has found into the section, so that the key of CorpusGen's cache and its
work are of the same files, even if others arrive in between.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from components.corpus_gen import patterns
from components.corpus_gen.paths import listing
from components.corpus_gen.patterns import Found
from components.corpus_gen.span_paths import Place, mistakes, places
from components.errors import UserError
from components.words import counted

# What rows carry as their span, beside its name: those of files that belong to every run.
FEATURE, FIXED = "span", "fixed"
_SHOWN = 5

Files = dict[int, dict[int | None, list[Found]]]  # by span and version


class Lack(NamedTuple):
    """Why a version of a span is not whole; ``unfinished`` where its marker is not there yet."""

    key: str
    text: str
    unfinished: bool = False


def settled(data: Mapping[str, Any], notes: list[str] | None = None) -> dict[str, Any]:
    """The section with the spans that are taken, in ``spans.taken``, oldest first.

    Of each its ``span`` (number), ``name``, ``version`` and ``files`` by split, in the form of
    ``data.train``; of one that is only replayed, the files of ``train`` alone, and ``replayed``.
    A section without patterns loses ``spans``, and a settled one stays as it is.

    Args:
        data: the ``data`` section.
        notes: gets a sentence on each span that is left out, or that is to be and is not there, and
            on gaps.

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
    found = {place: _files(place, rule.get("marker")) for place in given}
    told: list[str] = [] if notes is None else notes
    chosen = _choose(found, rule, told)
    older = len(chosen) - rule["window"] if rule.get("replay") else 0
    taken = []
    for place, (number, version) in enumerate(chosen):
        one = {"span": number, "name": _any(found, number).name, "version": version}
        files = _of(found, number, version)
        if place < older:
            taken.append({**one, "files": {"train": files["train"]}, "replayed": True})
        else:
            taken.append({**one, "files": files})
    dated = patterns.has_date(given[0].pattern)
    there = {number for files in found.values() for number in files}
    without = _without(rule, dated)
    for number in sorted(without - there):
        name = patterns.name_of(number, dated)
        told.append(f"data.spans.without: there is no span {name}")
    _note_gaps(taken, there | without, dated, told)
    kept = {"test_share": rule.get("test_share") or 0.0, "taken": taken}
    if older > 0:
        kept["replay"] = rule["replay"]
    return {**data, "spans": kept}


def _files(place: Place, marker: str | None) -> Files:
    """The files that fit a pattern; markers are none of them."""
    found: Files = {}
    for file in patterns.find(place.root, place.pattern, place.key):
        if marker and os.path.normpath(file.path) == os.path.normpath(_marker(marker, file)):
            continue
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
        path = _path(place, place.pattern)
        folders = path.split(os.sep)
        first = next(i for i, part in enumerate(folders) if patterns.is_pattern(part))
        remedy = listing(os.sep.join(folders[: first + 1]))
        raise UserError(f"no file fits {path}", where=place.key, remedy=remedy)
    return found


def _choose(
    found: Mapping[Place, Files], rule: Mapping[str, Any], notes: list[str]
) -> list[tuple[int, int | None]]:
    """The spans that are taken with their versions; those that are replayed, too."""
    whole: dict[int, int | None] = {}
    lacks: list[tuple[int, int | None, Lack]] = []
    for number in _between(found, rule):
        for version in _versions(found, number):
            if (lack := _lack(found, number, version, rule.get("marker"))) is None:
                whole[number] = version
                break
            lacks.append((number, version, lack))
    window = None if rule.get("replay") else rule.get("window")
    chosen = sorted(whole)[-(window or len(whole)) :]
    # What is older than a full window is not wanted, and need not be whole.
    start = chosen[0] if window and len(chosen) == window else None
    for number, version, lack in lacks:
        if start is not None and number < start:
            continue
        told = _called(found, number, version)
        may_come = lack.unfinished
        if not rule.get("marker") and chosen:
            may_come = number in whole or number > chosen[-1]
        if not chosen or not may_come:
            raise UserError(
                f"{told} is not whole: {lack.text}",
                where=lack.key,
                remedy="Add what is missing, take the span's other files away, or leave it out "
                "with data.spans.without, data.spans.first or data.spans.last.",
            )
        instead = f"; version {whole[number]} is taken" if number in whole else ""
        notes.append(f"{told} is left out: {lack.text}{instead}")
    return [(number, whole[number]) for number in chosen]


def _between(found: Mapping[Place, Files], rule: Mapping[str, Any]) -> list[int]:
    """The spans that any pattern tells of, from ``first`` to ``last``, but for ``without``."""
    dated = any(patterns.has_date(place.pattern) for place in found)
    numbers = sorted({number for files in found.values() for number in files})
    kept, names = numbers, [_any(found, number).name for number in (numbers[0], numbers[-1])]
    if rule.get("first") is not None:
        kept = [n for n in kept if n >= patterns.number_of(rule["first"], dated)]
    if rule.get("last") is not None:
        kept = [n for n in kept if n <= patterns.number_of(rule["last"], dated)]
    kept = [n for n in kept if n not in _without(rule, dated)]
    if not kept:
        given = [key for key in ("first", "last") if rule.get(key) is not None]
        raise UserError(
            f"leaves none of the {counted(len(numbers), 'span')}, {names[0]} to {names[1]}",
            where=f"data.spans.{[*given, 'without'][0]}",
            remedy="Give bounds that spans lie between, or leave out fewer.",
        )
    return kept


def _without(rule: Mapping[str, Any], dated: bool) -> set[int]:
    """The spans that are left out by their number or date."""
    return {patterns.number_of(value, dated) for value in rule.get("without") or ()}


def _versions(found: Mapping[Place, Files], number: int) -> list[int | None]:
    """The versions of a span, the newest first; None alone where no pattern tells any."""
    told = {version for files in found.values() for version in files.get(number, ())}
    return [*sorted((v for v in told if v is not None), reverse=True)] or [None]


def _lack(
    found: Mapping[Place, Files], number: int, version: int | None, marker: str | None
) -> Lack | None:
    """What a version of a span has not; None where it is whole."""
    there = {place: _fitting(files, number, version) for place, files in found.items()}
    # Where some pattern tells no version, the file of another one tells more.
    examples = (files[0] for files in there.values() if files)
    example = max(examples, key=lambda file: len(file.written))
    for place, files in there.items() if marker else ():
        for path in _missing_markers(place, files, marker or "", example):
            return Lack(place.key, f"{path} is not there", unfinished=True)
    for place, files in there.items():
        if not files:
            path = _path(place, patterns.filled(place.pattern, example))
            return Lack(place.key, f"{path} is not there")
    return None


def _missing_markers(
    place: Place, files: Sequence[Found], marker: str, example: Found
) -> Iterator[str]:
    """The markers that are not there; of a place without a file, where its files would be."""
    for file in files:
        if not os.path.isfile(path := _marker(marker, file)):
            yield path
    if not files:
        folder = os.path.dirname(patterns.filled(place.pattern, example))
        name = patterns.filled(marker, example)
        if not glob.glob(_path(place, os.path.join(folder, glob.escape(name)), glob.escape)):
            yield _path(place, os.path.join(folder, name))


def _marker(marker: str, file: Found) -> str:
    """The path of the marker beside a file."""
    return os.path.join(os.path.dirname(file.path), patterns.filled(marker, file))


def _path(place: Place, pattern: str, escape: Callable[[str], str] = str) -> str:
    """A pattern of a place with its root, which has no signs of patterns."""
    return os.path.join(escape(place.root), os.path.expanduser(pattern))


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


def _note_gaps(
    taken: Sequence[Mapping[str, Any]], known: set[int], dated: bool, notes: list[str]
) -> None:
    """Says which numbers have no span between the first and the last one that is taken.

    What is left out is not missing. Where more are missing than there are, such as between weeks
    or whole dates as numbers, they do not count by ones, and nothing is missing.

    Args:
        taken: the spans that are taken.
        known: the numbers of all spans that there are, and of those that nobody wants.
        dated: whether they are dates.
        notes: gets the sentence.
    """
    first, last = taken[0]["span"], taken[-1]["span"]
    known = {number for number in known if first <= number <= last}
    count = last - first + 1 - len(known)
    if not 0 < count <= len(taken):
        return
    missing = sorted({*range(first, last)} - known)
    names = [patterns.name_of(number, dated) for number in missing[:_SHOWN]]
    more = f" and {count - _SHOWN:,} more" if count > _SHOWN else ""
    noun = "span is" if count == 1 else "spans are"
    between = f"between {taken[0]['name']} and {taken[-1]['name']}"
    notes.append(f"{count:,} {noun} missing {between}: {', '.join(names)}{more}")
