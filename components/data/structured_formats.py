"""The rows of JSON lines and Parquet files, whose cells are values already."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from regard.components.data.read_problems import ReadProblems, UnreadableFile
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.text_files import decode_line, read_lines, shorten
from regard.models.suggestions import did_you_mean
from regard.models.tasks.description import Feature

if TYPE_CHECKING:
    import pyarrow as pa

# The line, from 1, and the cells of a row in the order of the features. The cells are None if the
# row is skipped and its problem recorded; a cell is None if it is missing.
Cells = tuple[int, Sequence[Any] | None]

_SKIPPED = object()


def missing_column(
    path: str, name: str, names: Sequence[str], line: int | None = None
) -> UnreadableFile:
    """Return the error of a column that a file does not have."""
    remedy = (
        f"{did_you_mean(name, names)}The file has {', '.join(names[:20])}. Check `data.columns`."
    )
    return UnreadableFile(path, f"there is no column {name!r}", remedy, line)


def _column_names(corpus: Corpus) -> list[str | None]:
    """Return the column or key of each feature; None for an optional feature without one."""
    columns = corpus.config.columns
    if columns is None:
        return [feature.name for feature in corpus.features]
    names = [columns.get(feature.name) for feature in corpus.features]
    return [None if name is None else str(name) for name in names]


def read_jsonl(group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
    """Yield the rows of a file with one JSON object per line."""
    (path,), config, features = group.files, corpus.config, corpus.features
    names = _column_names(corpus)
    for line, text in enumerate(read_lines(path, problems, config.encoding_errors), 1):
        if text is None:
            yield line, None
            continue
        content, problem = _parse_json(text)
        problem = problem or _object_problem(content, names, features)
        if problem:
            problems.add("row", config.bad_rows, path, line, f"{problem}: {shorten(text)!r}")
            yield line, None
            continue
        cells = [content.get(name) for name in names]
        yield line, _decode_cells(cells, features, path, line, problems, config.encoding_errors)


def _parse_json(text: str) -> tuple[Any, str | None]:
    try:
        return json.loads(text), None
    except RecursionError:
        return None, "not JSON: nested too deeply"
    except ValueError as error:
        return None, f"not JSON: {getattr(error, 'msg', error)}"


def _object_problem(
    content: Any, names: Sequence[str | None], features: Sequence[Feature]
) -> str | None:
    if not isinstance(content, dict):
        return "not a JSON object"
    for name, feature in zip(names, features, strict=True):
        if content.get(name) is None and not feature.optional:
            return f"no value for {name!r}" if name in content else f"no key {name!r}"
    return None


def _decode_cells(
    cells: Sequence[Any],
    features: Sequence[Feature],
    path: str,
    line: int,
    problems: ReadProblems,
    errors: str,
) -> list[Any] | None:
    """Decode every text like a line of a file; None if one of them is skipped.

    JSON escapes can name characters that UTF-8 cannot hold, and Parquet does not guarantee that its
    strings are UTF-8.
    """
    decode = functools.partial(decode_line, path=path, line=line, problems=problems, errors=errors)
    decoded = [
        _decode_cell(cell, decode) if feature.kind in ("text", "image") else cell
        for cell, feature in zip(cells, features, strict=True)
    ]
    return None if any(cell is _SKIPPED for cell in decoded) else decoded


def _decode_cell(cell: Any, decode: Callable[[bytes], str | None]) -> Any:
    if isinstance(cell, str):
        if cell.isascii() and "\0" not in cell:
            return cell
        cell = cell.encode("utf-8", "surrogatepass")
    if isinstance(cell, bytes):
        text = decode(cell)
        return _SKIPPED if text is None else text
    if isinstance(cell, list):
        items = [_decode_cell(item, decode) for item in cell]
        return _SKIPPED if any(item is _SKIPPED for item in items) else items
    return cell


def read_parquet(group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
    """Yield the rows of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (path,), config, features = group.files, corpus.config, corpus.features
    line = 0
    try:
        with pq.ParquetFile(path) as file:
            names = _parquet_names(corpus, file.schema_arrow)
            types = [
                None if name is None else _column_type(name, feature, file.schema_arrow, path)
                for name, feature in zip(names, features, strict=True)
            ]
            selected = sorted({name for name in names if name is not None})
            for batch in file.iter_batches(batch_size=4096, columns=selected):
                columns = [
                    [None] * len(batch) if name is None else _to_list(batch.column(name), kind)
                    for name, kind in zip(names, types, strict=True)
                ]
                for cells in zip(*columns, strict=True):
                    line += 1
                    missing = _missing_name(names, cells, features) if None in cells else None
                    if missing:
                        problem = f"no value for {missing!r}"
                        problems.add("row", config.bad_rows, path, line, problem)
                        yield line, None
                        continue
                    errors = config.encoding_errors
                    yield line, _decode_cells(cells, features, path, line, problems, errors)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        remedy = "Write or download the file again."
        raise UnreadableFile(path, f"not a readable Parquet file: {reason}", remedy) from error
    if not line:
        raise UnreadableFile(path, "the file has no rows", "Remove it, or write it again.")


def _parquet_names(corpus: Corpus, schema: pa.Schema) -> list[str | None]:
    names = _column_names(corpus)
    if corpus.config.columns is not None:
        return names
    optional = {feature.name for feature in corpus.features if feature.optional}
    return [None if name in optional and name not in schema.names else name for name in names]


def _missing_name(
    names: Sequence[str | None], cells: Sequence[Any], features: Sequence[Feature]
) -> str | None:
    """Return the first column that needs a value and has none."""
    row = zip(names, cells, features, strict=True)
    return next((n for n, cell, f in row if cell is None and not f.optional), None)


def _to_list(column: pa.Array, kind: pa.DataType | None) -> list[Any]:
    return (column if kind is None else column.cast(kind)).to_pylist()


def _column_type(name: str, feature: Feature, schema: pa.Schema, path: str) -> pa.DataType | None:
    """Return the type that a column is cast to before it is read; None for its own.

    Raises:
        UnreadableFile: the column is missing, or its type does not suit the feature.
    """
    import pyarrow as pa
    import pyarrow.types as types

    if name not in schema.names:
        raise missing_column(path, name, list(schema.names))
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
    return None


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
