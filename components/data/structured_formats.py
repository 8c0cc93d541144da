"""The rows of JSON lines and Parquet files, whose cells are values already."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from regard.components.common.formatting import truncate
from regard.components.data.read_problems import ReadProblems, UnreadableFile
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.text_files import decode_line, read_lines
from regard.models.suggestions import suggest
from regard.models.tasks.description import Feature

if TYPE_CHECKING:
    import pyarrow as pa

# The line, from 1, and the cells of a row in the order of the features. The cells are None if the
# row is skipped and its problem recorded; a cell is None if it is missing.
Cells = tuple[int, Sequence[Any] | None]


class _SkippedCellError(Exception):
    """A text is skipped, and so is its row."""


def missing_column(
    path: str, name: str, names: Sequence[str], line: int | None = None
) -> UnreadableFile:
    """Return the error of a column that a file does not have."""
    remedy = f"{suggest(name, names)}. Check `data.columns`."
    return UnreadableFile(path, f"there is no column {name!r}", remedy, line)


def _column_names(
    corpus: Corpus, path: str, available: Sequence[str] | None = None
) -> list[str | None]:
    """Return the column or key of each feature; None for an optional feature without one.

    Raises:
        UnreadableFile: a column is not ``available``.
    """
    names: list[str | None] = []
    for feature in corpus.features:
        columns = corpus.config.columns
        name = feature.name if columns is None else columns.get(feature.name)
        if name is not None and available is not None and name not in available:
            if columns is not None or not feature.optional:
                raise missing_column(path, str(name), available)
            name = None
        names.append(None if name is None else str(name))
    return names


def read_jsonl(group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
    """Yield the rows of a file with one JSON object per line."""
    (path,) = group.files
    names = _column_names(corpus, path)
    for line, text in enumerate(read_lines(path, problems), 1):
        if text is None:
            yield line, None
            continue
        content, problem = _parse_json(text)
        if problem:
            problems.add(path, line, f"{problem}: {truncate(text)!r}")
            yield line, None
            continue
        yield line, _decode_cells(list(map(content.get, names)), corpus, path, line, problems)


def _parse_json(text: str) -> tuple[dict[Any, Any], str | None]:
    """Return a JSON object, or what is wrong with it."""
    try:
        content = json.loads(text)
    except RecursionError:
        return {}, "not JSON: nested too deeply"
    except ValueError as error:
        return {}, f"not JSON: {getattr(error, 'msg', error)}"
    return (content, None) if isinstance(content, dict) else ({}, "not a JSON object")


def _decode_cells(
    cells: Sequence[Any], corpus: Corpus, path: str, line: int, problems: ReadProblems
) -> list[Any] | None:
    """Decode every text like a line of a file; None if one of them is skipped.

    JSON escapes can name characters that UTF-8 cannot hold, and Parquet does not guarantee that its
    strings are UTF-8.
    """

    def decode(cell: Any) -> Any:
        if isinstance(cell, list):
            return [decode(item) for item in cell]
        if isinstance(cell, str):
            if cell.isascii() and "\0" not in cell:
                return cell
            cell = cell.encode("utf-8", "surrogatepass")
        if isinstance(cell, bytes):
            cell = decode_line(cell, path, line, problems)
            if cell is None:
                raise _SkippedCellError
        return cell

    try:
        return [
            decode(cell) if feature.kind in ("text", "image") else cell
            for cell, feature in zip(cells, corpus.features, strict=True)
        ]
    except _SkippedCellError:
        return None
    except RecursionError:
        problems.add(path, line, "a value is nested too deeply")
        return None


def read_parquet(group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
    """Yield the rows of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (path,) = group.files
    line = 0
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            names = _column_names(corpus, path, schema.names)
            types = [
                _column_type(name, feature, schema, path) if name else None
                for name, feature in zip(names, corpus.features, strict=True)
            ]
            selected = sorted({name for name in names if name is not None})
            for batch in file.iter_batches(batch_size=4096, columns=selected):
                columns = [
                    [None] * len(batch) if name is None else batch[name].cast(kind).to_pylist()
                    for name, kind in zip(names, types, strict=True)
                ]
                for cells in zip(*columns, strict=True):
                    line += 1
                    yield line, _decode_cells(cells, corpus, path, line, problems)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        remedy = "Write or download the file again."
        raise UnreadableFile(path, f"not a readable Parquet file: {reason}", remedy) from error
    if not line:
        raise UnreadableFile(path, "the file has no rows", "Remove it, or write it again.")


def _column_type(name: str, feature: Feature, schema: pa.Schema, path: str) -> pa.DataType:
    """Return the type that a column is cast to before it is read.

    Raises:
        UnreadableFile: its type does not suit the feature.
    """
    import pyarrow as pa
    import pyarrow.types as types

    kind = schema.field(name).type
    depth, inner = 0, kind
    while types.is_list(inner) or types.is_large_list(inner) or types.is_fixed_size_list(inner):
        depth, inner = depth + 1, inner.value_type
    if types.is_dictionary(inner):
        inner = inner.value_type
    depths, expected, tests = _COLUMN_TYPES[feature.kind]
    if depth not in depths or not any(getattr(types, f"is_{test}")(inner) for test in tests):
        raise UnreadableFile(
            path,
            f"the column {name!r} holds {kind}, not {expected}",
            "Name another column in `data.columns`.",
        )
    if feature.kind in ("text", "image"):
        return pa.large_list(pa.large_binary()) if depth else pa.large_binary()
    return kind


_STRINGS = ("string", "large_string", "binary", "large_binary")
_NUMBERS = ("integer", "floating", "decimal")
# By kind of feature: the possible depths of nested lists, a description, and the innermost types.
_COLUMN_TYPES: dict[str, tuple[tuple[int, ...], str, tuple[str, ...]]] = {
    "text": ((0, 1), "strings", _STRINGS),
    "image": ((0,), "strings", _STRINGS),
    "number": ((0,), "numbers", _NUMBERS),
    "points": ((2,), "lists of [x, y]", _NUMBERS),
    "positions": ((1,), "lists of whole numbers", ("integer",)),
}
