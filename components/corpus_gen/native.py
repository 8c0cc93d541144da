"""Rows of JSON lines and Parquet, whose cells are values already: ``(line, cells)``."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from components.corpus_gen.columns import Columns, keys, near
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.text import decode_line, lines, shorten
from models.tasks.features import Feature

# The line, from 1, and the cells of a row in the order of the features; None for a row that is
# left out, of which the problem has been noted, and for a cell that is not there.
Cells = tuple[int, Sequence[Any] | None]

_LEFT_OUT = object()


def jsonl(
    path: str,
    features: Sequence[Feature],
    columns: Columns | None,
    problems: Problems,
    encoding_errors: str,
    bad_rows: str,
) -> Iterator[Cells]:
    """The rows of a file with one JSON object a line."""
    names = keys(features, columns, path)
    for number, text in enumerate(lines(path, problems, encoding_errors), 1):
        if text is None:
            yield number, None
            continue
        content, told = _loaded(text)
        told = told or _wrong_object(content, names, features)
        if told:
            problems.add("row", bad_rows, path, number, f"{told}: {shorten(text)!r}")
            yield number, None
            continue
        cells = [content.get(name) for name in names]
        yield number, _cleaned(cells, features, path, number, problems, encoding_errors)


def _loaded(text: str) -> tuple[Any, str | None]:
    try:
        return json.loads(text), None
    except RecursionError:
        return None, "not JSON: nested too deeply"
    except ValueError as error:
        return None, f"not JSON: {getattr(error, 'msg', error)}"


def _wrong_object(
    content: Any, names: Sequence[str | None], features: Sequence[Feature]
) -> str | None:
    if not isinstance(content, dict):
        return "not a JSON object"
    for name, feature in zip(names, features, strict=True):
        if content.get(name) is None and not feature.optional:
            return f"no value for {name!r}" if name in content else f"no key {name!r}"
    return None


def _cleaned(
    cells: Sequence[Any],
    features: Sequence[Feature],
    path: str,
    number: int,
    problems: Problems,
    errors: str,
) -> list[Any] | None:
    """The cells with every text decoded as a line of a file is; None where one is left out.

    JSON's escapes can name what no UTF-8 file can hold, and Parquet does not promise that its
    strings are UTF-8.
    """
    decode = functools.partial(
        decode_line, path=path, number=number, problems=problems, errors=errors
    )
    clean = [
        _decoded(cell, decode) if feature.kind in ("text", "image") else cell
        for cell, feature in zip(cells, features, strict=True)
    ]
    return None if any(cell is _LEFT_OUT for cell in clean) else clean


def _decoded(cell: Any, decode: Callable[[bytes], str | None]) -> Any:
    if isinstance(cell, str):
        if cell.isascii() and "\0" not in cell:
            return cell
        cell = cell.encode("utf-8", "surrogatepass")
    if isinstance(cell, bytes):
        text = decode(cell)
        return _LEFT_OUT if text is None else text
    if isinstance(cell, list):
        items = [_decoded(item, decode) for item in cell]
        return _LEFT_OUT if any(item is _LEFT_OUT for item in items) else items
    return cell


def parquet(
    path: str,
    features: Sequence[Feature],
    columns: Columns | None,
    problems: Problems,
    encoding_errors: str,
    bad_rows: str,
) -> Iterator[Cells]:
    """The rows of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = keys(features, columns, path)
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            if columns is None:
                there = [not f.optional or f.name in schema.names for f in features]
                names = [name if is_ else None for name, is_ in zip(names, there, strict=True)]
            types = [
                None if name is None else _cast(name, feature, schema, path)
                for name, feature in zip(names, features, strict=True)
            ]
            wanted = sorted({name for name in names if name is not None})
            for batch in file.iter_batches(batch_size=4096, columns=wanted):
                places = [None if n is None else batch.schema.get_field_index(n) for n in names]
                found = [
                    [None] * len(batch) if place is None else _listed(batch.column(place), kind)
                    for place, kind in zip(places, types, strict=True)
                ]
                for cells in zip(*found, strict=True):
                    number += 1
                    missing = _missing(names, cells, features) if None in cells else None
                    if missing:
                        told = f"no value for {missing!r}"
                        problems.add("row", bad_rows, path, number, told)
                        yield number, None
                        continue
                    row = _cleaned(cells, features, path, number, problems, encoding_errors)
                    yield number, row
    except (pa.ArrowException, OSError) as error:
        first = str(error).splitlines()[0]
        raise Broken(
            path, f"not a readable Parquet file: {first}", "Write or fetch it again."
        ) from error
    if not number:
        raise Broken(path, "the file has no rows", "Take it off the list, or write it again.")


def _missing(
    names: Sequence[str | None], cells: Sequence[Any], features: Sequence[Feature]
) -> str | None:
    """The name of the first column that must have a value and has none."""
    row = zip(names, cells, features, strict=True)
    return next((n for n, cell, f in row if cell is None and not f.optional), None)


def _listed(column: Any, kind: Any) -> list[Any]:
    return (column if kind is None else column.cast(kind)).to_pylist()


def _cast(name: str, feature: Feature, schema: Any, path: str) -> Any:
    """What a column is cast to before it is read, or None for one that is read as it is.

    Raises:
        Broken: there is no such column, or it holds what is no value of the feature.
    """
    import pyarrow as pa
    import pyarrow.types as types

    if name not in schema.names:
        raise Broken(path, f"no column is called {name!r}", near(name, list(schema.names)))
    given = schema.field(name).type
    depth, inner = 0, given
    while types.is_list(inner) or types.is_large_list(inner) or types.is_fixed_size_list(inner):
        depth, inner = depth + 1, inner.value_type
    if types.is_dictionary(inner):
        inner = inner.value_type
    depths, expected, tests = _HOLDS[feature.kind]
    if depth not in depths or not any(getattr(types, f"is_{test}")(inner) for test in tests):
        raise Broken(
            path,
            f"the column {name!r} holds {given}, not {expected}",
            "Name another column in `data.columns`.",
        )
    if feature.kind in ("text", "image"):
        return pa.large_list(pa.large_binary()) if depth else pa.large_binary()
    return None


_STRINGS = ("string", "large_string", "binary", "large_binary")
_NUMBERS = ("integer", "floating", "decimal")
# How deep the lists of a column may be nested, what is told otherwise, and what is in them.
_HOLDS: dict[str, tuple[tuple[int, ...], str, tuple[str, ...]]] = {
    "text": ((0, 1), "strings", _STRINGS),
    "image": ((0,), "strings", _STRINGS),
    "number": ((0,), "numbers", _NUMBERS),
    "points": ((2,), "lists of [x, y]", _NUMBERS),
    "positions": ((1,), "lists of whole numbers", ("integer",)),
}
