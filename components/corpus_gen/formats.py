"""Rows from parallel files, TSV, JSON lines and Parquet: ``(line, values)``, one file at a time."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.sources import Group, features
from components.corpus_gen.text import decode_line, lines, shorten

Row = tuple[int, Sequence[str]]
_END = object()


@dataclass(frozen=True)
class Options:
    """What the ``data`` section says about reading."""

    features: list[str]
    columns: dict[str, int | str] | None = None
    header: bool = False
    encoding_errors: str = "fail"
    bad_rows: str = "fail"

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Options:
        """The options in a ``data`` section."""
        return cls(
            features(data),
            data.get("columns"),
            bool(data.get("header", False)),
            data.get("encoding_errors", "fail"),
            data.get("bad_rows", "fail"),
        )


def read(group: Group, options: Options, problems: Problems) -> Iterator[Row]:
    """Yields the rows of a group of files with their line numbers, from 1.

    Rows that are to be left out are noted in ``problems`` and not yielded.

    Raises:
        Broken: a file cannot be used at all, or parallel files are uneven.
    """
    return _READERS[group.format](group, options, problems)


def _parallel(group: Group, options: Options, problems: Problems) -> Iterator[Row]:
    sides = [lines(path, problems, options.encoding_errors) for path in group.files]
    number = 0
    for number, row in enumerate(zip_longest(*sides, fillvalue=_END), 1):
        if _END in row:
            break
        if None not in row:
            yield number, row  # type: ignore[misc]
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
        "Line n of one file must be the translation of line n of the other.",
    )


def _tsv(group: Group, options: Options, problems: Problems) -> Iterator[Row]:
    (path,) = group.files
    columns = options.columns or {name: i for i, name in enumerate(options.features, 1)}
    places: list[int] = []
    width = 0
    rule = ""
    for number, text in enumerate(lines(path, problems, options.encoding_errors), 1):
        if text is None:
            continue
        cells = text.split("\t")
        if not places:
            names = cells if options.header else []
            width = len(cells)
            places = [_place(columns, name, names, width, path) for name in options.features]
            rule = f"as the {'header' if names else 'first row'} (line {number}) has"
            if names:
                continue
        if len(cells) != width:
            told = f"{_columns(len(cells))}, not {width} {rule}: {shorten(text)!r}"
            problems.add("row", options.bad_rows, path, number, told)
            continue
        yield number, [cells[place] for place in places]


def _place(
    columns: Mapping[str, int | str], name: str, names: list[str], width: int, path: str
) -> int:
    """Where in a row the column for a feature is, from 0."""
    column = _column(columns, name, path)
    if isinstance(column, int):
        if 1 <= column <= width:
            return column - 1
        raise Broken(
            path,
            f"column {column} for {name} is not there: the first row has {_columns(width)}",
            "Columns are divided by tabs and counted from 1: see `data.columns`.",
            1,
        )
    if column in names:
        return names.index(column)
    if not names:
        raise Broken(
            path,
            f"column {column!r} for {name} is a name, but the file is read without a header",
            "Set `data.header: true`, or give the column's number.",
        )
    raise Broken(path, f"no column is called {column!r}", _near(column, names), 1)


def _jsonl(group: Group, options: Options, problems: Problems) -> Iterator[Row]:
    (path,) = group.files
    keys = _names(options, path)
    for number, text in enumerate(lines(path, problems, options.encoding_errors), 1):
        if text is None:
            continue
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            told = getattr(error, "msg", None) or "nested too deeply"
            problems.add(
                "row", options.bad_rows, path, number, f"not JSON: {told}: {shorten(text)!r}"
            )
            continue
        wrong = _wrong_object(content, keys)
        if wrong:
            told = f"{wrong}: {shorten(text)!r}"
            problems.add("row", options.bad_rows, path, number, told)
            continue
        values = [_whole(content[key], path, number, problems, options) for key in keys]
        if None not in values:
            yield number, values  # type: ignore[misc]


def _wrong_object(content: Any, keys: list[str]) -> str | None:
    if not isinstance(content, dict):
        return "not a JSON object"
    for key in keys:
        if key not in content:
            return f"no key {key!r}"
        if not isinstance(content[key], str):
            return f"the value of {key!r} is not a string"
    return None


def _whole(text: str, path: str, number: int, problems: Problems, options: Options) -> str | None:
    """A string out of JSON, whose escapes can name what no UTF-8 file can hold."""
    if text.isascii() and "\0" not in text:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    return decode_line(raw, path, number, problems, options.encoding_errors)


def _parquet(group: Group, options: Options, problems: Problems) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (path,) = group.files
    names = _names(options, path)
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            for name in names:
                _check_type(name, schema, path)
            number = 0
            for batch in file.iter_batches(batch_size=4096, columns=sorted(set(names))):
                # As bytes, since Parquet does not promise that its strings are UTF-8.
                cells = [
                    batch.column(batch.schema.get_field_index(name)).cast(pa.large_binary())
                    for name in names
                ]
                for values in zip(*(cell.to_pylist() for cell in cells), strict=True):
                    number += 1
                    if None in values:
                        told = f"no value for {names[values.index(None)]!r}"
                        problems.add("row", options.bad_rows, path, number, told)
                        continue
                    row = [
                        decode_line(raw, path, number, problems, options.encoding_errors)
                        for raw in values
                    ]
                    if None not in row:
                        yield number, row  # type: ignore[misc]
    except (pa.ArrowException, OSError) as error:
        first = str(error).splitlines()[0]
        raise Broken(
            path, f"not a readable Parquet file: {first}", "Write or fetch it again."
        ) from error
    if not number:
        raise Broken(path, "the file has no rows", "Take it off the list, or write it again.")


def _check_type(name: str, schema: Any, path: str) -> None:
    import pyarrow.types as types

    if name not in schema.names:
        raise Broken(path, f"no column is called {name!r}", _near(name, list(schema.names)))
    kind = schema.field(name).type
    inner = kind.value_type if types.is_dictionary(kind) else kind
    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    if not any(test(inner) for test in tests):
        raise Broken(
            path,
            f"the column {name!r} holds {kind}, not strings",
            "Name another column in `data.columns`.",
        )


def _names(options: Options, path: str) -> list[str]:
    columns = options.columns or {name: name for name in options.features}
    names = [_column(columns, name, path) for name in options.features]
    for name in names:
        if not isinstance(name, str):
            raise Broken(
                path,
                f"`data.columns` has the number {name}, but this format knows columns by name",
                "Give the name of the column or key.",
            )
    return names  # type: ignore[return-value]


def _column(columns: Mapping[str, int | str], name: str, path: str) -> int | str:
    if name not in columns:
        raise Broken(
            path, f"`data.columns` does not say where {name} is", f"Add `{name}: COLUMN` to it."
        )
    return columns[name]


def _columns(count: int) -> str:
    return f"{count} column" if count == 1 else f"{count} columns"


def _near(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, 1)
    listed = f"The file has {', '.join(names[:20])}."
    return (f"Did you mean {near[0]!r}? " if near else "") + f"{listed} See `data.columns`."


_READERS: dict[str, Callable[[Group, Options, Problems], Iterator[Row]]] = {
    "parallel": _parallel,
    "tsv": _tsv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
