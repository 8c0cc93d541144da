"""The spans of a growing corpus that a run uses, chosen once, before any file is read.

A span is a part of the corpus that arrives at one time, for example the data of a day;
``span_patterns`` describes how paths name it. All patterns of the section ``data`` refer to the
same spans: a span is complete if each pattern has a file of it, in the newest version for which
this is true. Files without a placeholder belong to every run, for example a fixed test set.

A span with a missing file is still being written if no later span is complete: it is skipped with a
note. Otherwise the missing file is an error. If the section names a ``marker``, the file that the
writer of a span creates last, only the marker counts: a span without it is skipped, and a span with
it must be complete.

``resolve_spans`` stores its choice in the corpus, so that CorpusGen's cache key and its work refer
to the same files even if others arrive in between.
"""

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from regard.components.data import span_patterns
from regard.components.data.config_rules import check_config
from regard.components.data.sources import Corpus, Span, check_root, suggest_path
from regard.components.data.span_patterns import SpanFile
from regard.components.data.span_rules import PatternLocation, pattern_locations
from regard.components.data.stored_files import with_local_files
from regard.components.settings.data import Files, SpansConfig
from regard.core.errors import DataError, NotFoundError, UserError
from regard.core.formatting import format_count

# The files of one pattern by span number and version.
PatternFiles = dict[int, dict[int | None, list[SpanFile]]]
FilesByPattern = Mapping[PatternLocation, PatternFiles]


class MissingFile(NamedTuple):
    """Why a version of a span is incomplete; ``unfinished`` if its marker is missing."""

    key: str
    text: str
    unfinished: bool = False


def resolve_spans(corpus: Corpus, notes: list[str] | None = None) -> Corpus:
    """Return the corpus with the spans that a run uses; no spans if no path has a placeholder.

    If ``replay`` is set, the spans before the window are included and marked as ``replayed``, with
    the files of ``train`` only. Spans that are resolved already do not change. Files in object
    storage are copied first.

    Args:
        corpus: the corpus.
        notes: receives a sentence about each skipped or unknown span.

    Raises:
        UserError: the section breaks a rule, a pattern matches no file, or a span is incomplete.
    """
    corpus = with_local_files(corpus)
    if corpus.spans is not None:
        return corpus
    check_config(corpus)
    locations = pattern_locations(corpus.config)
    if not locations:
        return replace(corpus, spans=())
    notes = [] if notes is None else notes
    rules, dated = corpus.config.spans, span_patterns.has_date(locations[0].pattern)
    files = {location: _find_files(location, rules.marker) for location in locations}
    chosen = _choose(files, rules, dated, notes)
    replayed = len(chosen) - rules.window if rules.replay and rules.window else 0
    spans = []
    for index, (number, version) in enumerate(chosen):
        by_split = _files_by_split(files, number, version)
        if index < replayed:
            by_split = {"train": by_split["train"]}
        name = _example(files, number).name
        spans.append(Span(number, name, version, by_split, replayed=index < replayed))
    known = {number for by_span in files.values() for number in by_span}
    for number in sorted(_excluded(rules, dated) - known):
        name = span_patterns.span_name(number, dated)
        notes.append(f"data.spans.exclude: span {name} does not exist")
    # How the spans were selected is not part of CorpusGen's cache key.
    replay = rules.replay if replayed > 0 else 0.0
    effective = SpansConfig(test_share=rules.test_share, replay=replay)
    config = corpus.config.model_copy(update={"spans": effective})
    return replace(corpus, config=config, spans=tuple(spans))


def _find_files(location: PatternLocation, marker: str | None) -> PatternFiles:
    """Return the files that match a pattern, without the markers."""
    files: PatternFiles = {}
    for file in span_patterns.find_span_files(location.root, location.pattern, location.key):
        if marker and os.path.normpath(file.path) == os.path.normpath(_marker_path(marker, file)):
            continue
        same = files.setdefault(file.span, {}).setdefault(file.version, [])
        if same and same[0].values != file.values:
            version = f", version {file.version}" if file.version is not None else ""
            raise DataError(
                f"{same[0].path} and {file.path} are both span {file.name}{version}",
                where=location.key,
                remedy="Remove one of them, or set a width, for example {SPAN:3}.",
            )
        same.append(file)
    if not files:
        check_root(location.root, location.pattern)
        path = _path(location, location.pattern)
        folders = path.split(os.sep)
        first = next(i for i, folder in enumerate(folders) if span_patterns.is_pattern(folder))
        remedy = suggest_path(os.sep.join(folders[: first + 1]))
        raise NotFoundError(f"No file matches {path}", where=location.key, remedy=remedy)
    return files


def _choose(
    files: FilesByPattern, rules: SpansConfig, dated: bool, notes: list[str]
) -> list[tuple[int, int | None]]:
    """Return the numbers and versions of the spans of a run, replayed ones included."""
    complete: dict[int, int | None] = {}
    incomplete: list[tuple[int, int | None, MissingFile]] = []
    for number in _within_bounds(files, rules, dated):
        for version in _versions(files, number):
            if (missing := _missing_file(files, number, version, rules.marker)) is None:
                complete[number] = version
                break
            incomplete.append((number, version, missing))
    window = None if rules.replay else rules.window
    chosen = sorted(complete)[-(window or len(complete)) :]
    # Spans before a full window need not be complete.
    start = chosen[0] if window and len(chosen) == window else None
    for number, version, missing in incomplete:
        if start is not None and number < start:
            continue
        title = f"span {_example(files, number).name}"
        title = title if version is None else f"version {version} of {title}"
        may_arrive = missing.unfinished
        if not rules.marker and chosen:
            may_arrive = number in complete or number > chosen[-1]
        if not chosen or not may_arrive:
            raise DataError(
                f"{title} is incomplete: {missing.text}",
                where=missing.key,
                remedy="Add the missing file, remove the other files of the span, or skip the span "
                "with data.spans.exclude, data.spans.first or data.spans.last.",
            )
        instead = f"; version {complete[number]} is used" if number in complete else ""
        notes.append(f"{title} is skipped: {missing.text}{instead}")
    return [(number, complete[number]) for number in chosen]


def _within_bounds(files: FilesByPattern, rules: SpansConfig, dated: bool) -> list[int]:
    """Return the spans from ``first`` to ``last`` without those of ``exclude``."""
    numbers = sorted({number for by_span in files.values() for number in by_span})
    first, last = (
        bound if value is None else span_patterns.span_number(value, dated)
        for value, bound in ((rules.first, numbers[0]), (rules.last, numbers[-1]))
    )
    excluded = _excluded(rules, dated)
    chosen = [number for number in numbers if first <= number <= last and number not in excluded]
    if not chosen:
        keys = [key for key in ("first", "last") if getattr(rules, key) is not None]
        oldest, newest = (span_patterns.span_name(numbers[end], dated) for end in (0, -1))
        message = f"Selects none of the {format_count(len(numbers), 'span')}, {oldest} to {newest}"
        remedy = "Choose other bounds, or exclude fewer spans."
        raise UserError(message, where=f"data.spans.{[*keys, 'exclude'][0]}", remedy=remedy)
    return chosen


def _excluded(rules: SpansConfig, dated: bool) -> set[int]:
    return {span_patterns.span_number(value, dated) for value in rules.exclude}


def _versions(files: FilesByPattern, number: int) -> list[int | None]:
    """Return the versions of a span, the newest first; only None if no pattern has versions."""
    versions = {version for by_span in files.values() for version in by_span.get(number, ())}
    return [*sorted((v for v in versions if v is not None), reverse=True)] or [None]


def _missing_file(
    files: FilesByPattern, number: int, version: int | None, marker: str | None
) -> MissingFile | None:
    """Return the first missing file of a version of a span; None if it is complete."""
    present = {
        location: _of_version(span_files, number, version) for location, span_files in files.items()
    }
    # A file of a pattern with a version has more values than one of a pattern without.
    examples = (span_files[0] for span_files in present.values() if span_files)
    example = max(examples, key=lambda file: len(file.values))
    for location, span_files in present.items():
        missing = _missing_marker(location, span_files, marker, example) if marker else None
        if missing:
            return MissingFile(location.key, f"{missing} is missing", unfinished=True)
    for location, span_files in present.items():
        if not span_files:
            path = _path(location, span_patterns.fill_placeholders(location.pattern, example))
            return MissingFile(location.key, f"{path} is missing")
    return None


def _missing_marker(
    location: PatternLocation, files: Sequence[SpanFile], marker: str, example: SpanFile
) -> str | None:
    """Return a missing marker; for a pattern without a file, where its files would be."""
    if files:
        paths = (_marker_path(marker, file) for file in files)
        return next((path for path in paths if not os.path.isfile(path)), None)
    folder = os.path.dirname(span_patterns.fill_placeholders(location.pattern, example))
    name = span_patterns.fill_placeholders(marker, example)
    markers = glob.glob(_path(location, os.path.join(folder, glob.escape(name)), glob.escape))
    return None if markers else _path(location, os.path.join(folder, name))


def _marker_path(marker: str, file: SpanFile) -> str:
    return os.path.join(os.path.dirname(file.path), span_patterns.fill_placeholders(marker, file))


def _path(location: PatternLocation, path: str, escape: Callable[[str], str] = str) -> str:
    """Return a path below the root of a pattern; glob characters in the root have no meaning."""
    return os.path.join(escape(location.root), os.path.expanduser(path))


def _of_version(files: PatternFiles, number: int, version: int | None) -> list[SpanFile]:
    """Return the files of a version; a pattern without versions has the same files for all."""
    versions = files.get(number, {})
    return versions.get(version) or versions.get(None, [])


def _files_by_split(files: FilesByPattern, number: int, version: int | None) -> dict[str, Files]:
    """Return the files of a version of a span by split, in the form of ``data.train``."""
    by_split: dict[str, dict[str | None, list[str]]] = {}
    for location, by_span in files.items():
        paths = [file.path for file in _of_version(by_span, number, version)]
        by_split.setdefault(location.split, {}).setdefault(location.side, []).extend(paths)
    return {
        split: by_side[None] if None in by_side else dict(by_side)  # type: ignore[arg-type]
        for split, by_side in by_split.items()
    }


def _example(files: FilesByPattern, number: int) -> SpanFile:
    """Return any file of a span."""
    versions = next(by_span[number] for by_span in files.values() if number in by_span)
    return next(iter(versions.values()))[0]
