"""The rows of JSON lines, Parquet and Arrow files, whose cells are values already."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regard.components.data.column_matching import find_name, match_columns
from regard.components.data.column_remedies import columns_remedy
from regard.components.data.columns import ambiguous_names, column_indices
from regard.components.data.layouts import Layout
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.tables import Cells
from regard.components.data.text_files import InvalidLine, decode_line, read_lines
from regard.components.data.unreadable_file import UnreadableFile
from regard.core.features import STRINGS, Feature
from regard.core.formatting import truncate

if TYPE_CHECKING:
    import pyarrow as pa


# Rows in which the keys of the features are looked for.
_MAX_ATTEMPTS = 1000
# Objects in objects, and structs in structs, in which features are found.
_MAX_DEPTH = 10


class _SkippedCellError(Exception):
    """A text is skipped, and so is its row."""


def read_jsonl(group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
    """Yield the rows of a file with one JSON object per line.

    The keys of the first row that has all features hold the features of all rows.
    """
    (path,), config = group.files, corpus.config
    names: list[str | None] | None = None
    selection: list[str | None] = [feature.name for feature in corpus.features]
    attempts = 0
    is_first = True
    for line, text in enumerate(read_lines(path, problems, encoding=config.encoding), 1):
        if isinstance(text, InvalidLine):
            yield line, None
            continue
        if not text.strip():  # a blank line is not a row
            continue
        content, problem = _parse_json(text)
        if problem and is_first:
            _check_is_lines(text, path, line)
        is_first = False
        remedy = None
        if problem:
            problem = f"{problem}: {truncate(text)!r}"
        else:
            if names is None and attempts < _MAX_ATTEMPTS:
                selection = _choose_keys(content, corpus, path, line)
                attempts += 1
            if missing := _missing_keys(selection, content, corpus):
                problem = f"there is no key {missing[0]!r}"
                remedy = None if problems.examples else _keys_remedy(corpus, content, missing[0])
            elif names is None:
                names = selection  # of all rows
                problems.layouts.append(_layout(path, corpus, names, _keys(content)))
        if problem:
            problems.add(path, line, problem, remedy)
            yield line, None
        else:
            cells = [content.get(name) for name in selection]
            yield line, decode_cells(cells, corpus, path, line, problems)


def _choose_keys(
    content: Mapping[str, Any], corpus: Corpus, path: str, line: int
) -> list[str | None]:
    """Return the key of each feature; keys that show nothing are those of the features.

    Raises:
        UnreadableFile: the keys can be read in several ways.
    """
    keys, columns = _keys(content), corpus.config.columns
    if columns is not None:
        selection = [columns.get(feature.name) for feature in corpus.features]
        return [None if name is None else _find_key(str(name), keys) for name in selection]
    matches = match_columns(corpus, keys)
    if len(matches) > 1:
        raise ambiguous_names(corpus, path, keys, matches, line)
    match = matches[0] if matches else [None] * len(corpus.features)
    return [
        feature.name if index is None else keys[index]
        for feature, index in zip(corpus.features, match, strict=True)
    ]


def _find_key(name: str, keys: Sequence[str]) -> str:
    index = find_name(name, keys)
    return name if index is None else keys[index]


def _keys(content: Mapping[str, Any]) -> list[str]:
    return [key for key, value in content.items() if not isinstance(value, dict)]


def _missing_keys(
    names: Sequence[str | None], content: Mapping[str, Any], corpus: Corpus
) -> list[str]:
    pairs = zip(names, corpus.features, strict=True)
    return [str(name) for name, one in pairs if not one.optional and name not in content]


def _keys_remedy(corpus: Corpus, content: Mapping[str, Any], missing: str) -> str:
    return columns_remedy(corpus, _keys(content), missing)


def _layout(
    path: str, corpus: Corpus, names: Sequence[str | None], all_names: Sequence[str]
) -> Layout:
    """Return the layout of a file whose columns have names."""
    columns = {
        feature.name: name
        for feature, name in zip(corpus.features, names, strict=True)
        if name is not None and name in all_names
    }
    unused = [name for name in all_names if name not in columns.values()]
    return Layout(path, columns, unused=unused)


def _check_is_lines(text: str, path: str, line: int) -> None:
    """Refuse a file that is an array, or whose objects are spread over lines.

    Args:
        text: the first line that is not blank, which is not a JSON object.
        path: the file.
        line: the number of the line.
    """
    try:
        content = json.loads(text)
    except (RecursionError, ValueError):
        content = None
    name, output = map(shlex.quote, (path, f"{os.path.splitext(path)[0]}.rows.jsonl"))
    if text.lstrip().startswith("[") and (content is None or _holds_objects(content)):
        message, program = "the file is a JSON array, not one JSON object a line", "jq -c '.[]'"
    elif text.strip() == "{":
        message, program = "a JSON object takes several lines, not one", "jq -c ."
    else:
        return
    remedy = f"Convert it: `{program} {name} > {output}`, and name that file."
    raise UnreadableFile(path, message, remedy, line)


def _holds_objects(content: Any) -> bool:
    return isinstance(content, list) and any(isinstance(item, dict) for item in content)


class _RepeatedKeyError(Exception):
    """A JSON object has a key twice, so that a value would be lost."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of keys and values."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise _RepeatedKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return content


def _parse_json(text: str) -> tuple[dict[Any, Any], str | None]:
    """Return a JSON object, also with keys such as ``translation.en``, or what is wrong with it."""
    try:
        content = json.loads(text, object_pairs_hook=_unique_keys)
    except RecursionError:
        return {}, "not JSON: nested too deeply"
    except _RepeatedKeyError as error:
        return {}, f"the key {truncate(str(error))!r} occurs twice in an object"
    except ValueError as error:
        return {}, f"not JSON: {getattr(error, 'msg', error)}"
    if not isinstance(content, dict):
        return {}, "not a JSON object"
    return dict(_inner_items(content)) | content, None


def _inner_items(content: Mapping[str, Any], depth: int = 1) -> Iterator[tuple[str, Any]]:
    """Yield what the objects in an object contain, with keys such as ``data.translation.en``."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", inner) for name, inner in value.items())
            if depth < _MAX_DEPTH:
                deeper = _inner_items(value, depth + 1)
                yield from ((f"{key}.{name}", inner) for name, inner in deeper)


def decode_cells(
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
            if isinstance(cell, InvalidLine):
                raise _SkippedCellError
        return cell

    try:
        return [
            decode(cell) if feature.kind.column_types == STRINGS else cell
            for cell, feature in zip(cells, corpus.features, strict=True)
        ]
    except _SkippedCellError:
        return None
    except RecursionError:
        problems.add(path, line, "a value is nested too deeply")
        return None


def read_batches(group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
    """Yield the rows of a Parquet or Arrow file."""
    import pyarrow as pa

    (path,) = group.files
    line = 0
    columns: list[tuple[str, pa.DataType] | None] = []

    def choose(schema: pa.Schema) -> list[str]:
        fields = list(_flatten(schema.empty_table()).schema)
        names = [field.name for field in fields]
        indices = column_indices(corpus, path, names)
        selection = [None if i is None else names[i] for i in indices]
        problems.layouts.append(_layout(path, corpus, selection, names))
        for i, feature in zip(indices, corpus.features, strict=True):
            columns.append(None if i is None else _cast_column(fields[i], feature, path))
        return sorted({column[0] for column in columns if column})

    try:
        for batch in _open_batches(path, group.format, choose):
            table = _flatten(pa.Table.from_batches([batch]))
            values = [
                _to_list(table[column[0]], column[1]) if column else [None] * len(table)
                for column in columns
            ]
            for cells in zip(*values, strict=True):
                line += 1
                yield line, decode_cells(cells, corpus, path, line, problems)
    except (pa.ArrowException, OSError, LookupError, ValueError) as error:  # also in names
        message = f"not a readable {group.format.capitalize()} file: {str(error).splitlines()[0]}"
        raise UnreadableFile(path, message, "Write or download the file again.") from error
    if not line:
        raise UnreadableFile(path, "the file has no rows", "Remove it, or write it again.")


def _flatten(table: pa.Table) -> pa.Table:
    """Return a table whose structs are columns with names such as ``data.translation.en``."""
    from pyarrow import types

    depth = 0
    while depth < _MAX_DEPTH and any(types.is_struct(field.type) for field in table.schema):
        table, depth = table.flatten(), depth + 1
    return table


def _open_batches(
    path: str, kind: str, choose: Callable[[pa.Schema], list[str]]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows, of Parquet only the columns that are selection from the schema."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind == "parquet":
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(4096, columns=choose(file.schema_arrow))
        return
    with pa.OSFile(path) as source:
        is_file = source.read(6) == b"ARROW1"  # otherwise a stream, as Hugging Face Datasets writes
        source.seek(0)
        reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        choose(reader.schema)
        numbers = range(reader.num_record_batches) if is_file else ()
        for batch in map(reader.get_batch, numbers) if is_file else reader:
            batch.validate(full=True)
            yield from (batch.slice(start, 4096) for start in range(0, len(batch), 4096))


def _cast_column(field: pa.Field, feature: Feature, path: str) -> tuple[str, pa.DataType]:
    """Return a column, and the type that it is cast to before it is read.

    Raises:
        UnreadableFile: its type does not suit the feature.
    """
    import pyarrow as pa
    import pyarrow.types as types

    kind = field.type
    depth, inner = 0, kind
    while any(getattr(types, f"is_{test}")(inner) for test in _LISTS):
        depth, inner = depth + 1, inner.value_type
    if types.is_dictionary(inner) and not (depth and _is_view(inner.value_type)):
        inner = inner.value_type
    depths, expected = feature.kind.column_depths, feature.kind.column_values
    tests = feature.kind.column_types
    is_empty = feature.optional and types.is_null(kind)
    is_suitable = depth in depths and any(getattr(types, f"is_{test}")(inner) for test in tests)
    if not (is_suitable or is_empty):
        raise UnreadableFile(
            path,
            f"the column {field.name!r} holds {kind}, not {expected}",
            f"Name another column in `data.columns`, or write it as {expected}.",
        )
    if feature.kind.column_types == STRINGS:
        kind = pa.large_list(pa.large_binary()) if depth else pa.large_binary()
    return field.name, kind


def _to_list(column: pa.ChunkedArray, kind: pa.DataType) -> list[Any]:
    """Return the values of a column, which is cast to a type first if it has another one."""
    return (column if column.type == kind else _without_views(column).cast(kind)).to_pylist()


def _without_views(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of texts whose dictionaries and lists are no views.

    pyarrow 18 cannot cast a dictionary of views, and gives empty lists for sliced views of lists.
    """
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind) and _is_view(kind.value_type):
        binary = pa.large_binary()
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(binary))
            for chunk in column.chunks
        ]
    elif types.is_list_view(kind) or types.is_large_list_view(kind):
        chunks = [_copy_lists(chunk) for chunk in column.chunks]
    else:
        return column
    return pa.chunked_array(chunks)


def _copy_lists(array: pa.Array) -> pa.LargeListArray:
    """Return the lists of an array of views, one after another."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = pc.list_value_length(array).fill_null(0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return pa.LargeListArray.from_arrays(offsets, array.flatten(), mask=array.is_null())


def _is_view(kind: pa.DataType) -> bool:
    from pyarrow import types

    return types.is_string_view(kind) or types.is_binary_view(kind)


_LISTS = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
