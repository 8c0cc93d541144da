"""Rows of any format: ``(line, values)``, one file at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from components.corpus_gen.columns import places
from components.corpus_gen.fields import Fields, Value, Wrong
from components.corpus_gen.images import Images
from components.corpus_gen.native import Cells, jsonl, parquet
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.references import joined
from components.corpus_gen.sources import Group, features
from components.corpus_gen.text import lines, shorten
from components.words import counted
from models.tasks.features import Feature

Row = tuple[int, Sequence[Value]]
_END = object()


@dataclass(frozen=True)
class Options:
    """What the ``data`` section says about reading."""

    features: list[Feature]
    columns: dict[str, int | str] | None = None
    header: bool = False
    encoding_errors: str = "fail"
    bad_rows: str = "fail"
    bad_rows_limit: float = 0.1

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Options:
        """The options in a ``data`` section."""
        return cls(
            features(data),
            data.get("columns"),
            bool(data.get("header", False)),
            data.get("encoding_errors", "fail"),
            data.get("bad_rows", "fail"),
            float(data.get("bad_rows_limit", 0.1)),
        )


def read(
    group: Group, options: Options, problems: Problems, images: Images | None = None
) -> Iterator[Row]:
    """Yields the rows of a group of files with their line numbers, from 1.

    Rows that are to be left out are noted in ``problems`` and not yielded. Where a feature may
    hold several texts, rows of tables and of parallel files with the same inputs become one.

    Args:
        group: the files.
        options: how to read them.
        problems: counts the rows, and takes what is wrong with them.
        images: looks at the images that rows name; None leaves them unseen.

    Raises:
        Broken: a file cannot be used at all, or parallel files are uneven.
    """
    rows = _values(group, options, problems, images)
    if group.format in _TABLES and any(feature.several for feature in options.features):
        return joined(rows, options.features)
    return rows


def _values(
    group: Group, options: Options, problems: Problems, images: Images | None
) -> Iterator[Row]:
    if group.format in _TABLES:
        fields = Fields(options.features, images, written=True)
        rows = _TABLES[group.format](group, options, problems)
    else:
        named = options.columns or {}
        called = [str(named.get(feature.name, feature.name)) for feature in options.features]
        fields = Fields(options.features, images, called)
        reader = jsonl if group.format == "jsonl" else parquet
        actions = options.encoding_errors, options.bad_rows
        rows = reader(group.files[0], options.features, options.columns, problems, *actions)
    for number, cells in rows:
        problems.rows += 1
        if cells is None:
            problems.left_out += 1
            continue
        try:
            values = fields(cells)
        except Wrong as wrong:
            problems.left_out += 1
            path = _file(group, options.features[wrong.column])
            problems.add("row", options.bad_rows, path, number, str(wrong))
        else:
            yield number, values


def _file(group: Group, feature: Feature) -> str:
    """The file that holds a feature."""
    return group.files[group.sides.index(feature.name) if group.sides else 0]


def _parallel(group: Group, options: Options, problems: Problems) -> Iterator[Cells]:
    sides = [lines(path, problems, options.encoding_errors) for path in group.files]
    names = [feature.name for feature in options.features]
    places = [group.sides.index(name) if name in group.sides else None for name in names]
    whole = None not in places
    number = 0
    for number, row in enumerate(zip_longest(*sides, fillvalue=_END), 1):
        if _END in row:
            break
        if None in row:
            yield number, None
        else:
            yield number, row if whole else [None if i is None else row[i] for i in places]
    else:
        return
    # What the longer files have left is counted, so that both numbers can be told.
    ended = [value is _END for value in row]
    counts = [
        number - 1 if done else number + sum(1 for _ in side)
        for done, side in zip(ended, sides, strict=True)
    ]
    told = " but ".join(
        f"{path} has {count:,} lines" for path, count in zip(group.files, counts, strict=True)
    )
    raise Broken(
        group.files[0],
        f"parallel files are uneven: {told}",
        "Line n of one file must belong to line n of the other.",
    )


def _tsv(group: Group, options: Options, problems: Problems) -> Iterator[Cells]:
    (path,) = group.files
    where: list[int | None] = []
    width = 0
    rule = ""
    for number, text in enumerate(lines(path, problems, options.encoding_errors), 1):
        if text is None:
            yield number, None
            continue
        cells = text.split("\t")
        if not where:
            names = cells if options.header else []
            width = len(cells)
            where = places(options.features, options.columns, names, width, path)
            rule = f"as the {'header' if names else 'first row'} (line {number}) has"
            if names:
                continue
        if len(cells) != width:
            told = f"{counted(len(cells), 'column')}, not {width} {rule}: {shorten(text)!r}"
            problems.add("row", options.bad_rows, path, number, told)
            yield number, None
            continue
        yield number, [None if place is None else cells[place] for place in where]


_TABLES: dict[str, Callable[[Group, Options, Problems], Iterator[Cells]]] = {
    "parallel": _parallel,
    "tsv": _tsv,
}
