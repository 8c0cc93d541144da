"""Rows of files that pyarrow reads: tables whose columns have names and types."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from regard.components.data.columns import column_indices
from regard.components.data.formats.base import Cells, DataFormat
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.typed_cells import MAX_DEPTH, decode_cells, named_layout
from regard.components.data.unreadable_file import UnreadableFile
from regard.core.features import STRINGS, Feature

if TYPE_CHECKING:
    import pyarrow as pa

# Rows that are read at a time.
BATCH_ROWS = 4096
_LISTS = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")


class ArrowTableFormat(DataFormat):
    """A format that pyarrow reads."""

    keys = {"columns": "a name; translation.en is a field of translation"}
    is_compressible = False

    @abstractmethod
    def open_batches(
        self, path: str, choose: Callable[[pa.Schema], list[str]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file.

        Args:
            path: The file.
            choose: Is called with the schema of the file, and returns the names of the columns that
                have to be read.

        Raises:
            pa.ArrowException, OSError, ValueError: The file is damaged.
        """

    def read(self, group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
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
            problems.layouts.append(named_layout(path, corpus, selection, names))
            for i, feature in zip(indices, corpus.features, strict=True):
                columns.append(None if i is None else _cast_column(fields[i], feature, path))
            return sorted({column[0] for column in columns if column})

        try:
            for batch in self.open_batches(path, choose):
                table = _flatten(pa.Table.from_batches([batch]))
                values = [
                    _to_list(table[column[0]], column[1]) if column else [None] * len(table)
                    for column in columns
                ]
                for cells in zip(*values, strict=True):
                    line += 1
                    yield line, decode_cells(cells, corpus, path, line, problems)
        except (pa.ArrowException, OSError, LookupError, ValueError) as error:  # also in names
            message = f"not a readable {self.name.capitalize()} file: {str(error).splitlines()[0]}"
            raise UnreadableFile(path, message, "Write or download the file again.") from error
        if not line:
            raise UnreadableFile(path, "the file has no rows", "Remove it, or write it again.")


def _flatten(table: pa.Table) -> pa.Table:
    """Return a table whose structs are columns with names such as ``data.translation.en``."""
    from pyarrow import types

    depth = 0
    while depth < MAX_DEPTH and any(types.is_struct(field.type) for field in table.schema):
        table, depth = table.flatten(), depth + 1
    return table


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
