"""Rows of files whose cells have types, such as JSON and Parquet: their texts and their layout."""

from collections.abc import Sequence
from typing import Any

from regard.components.data.layouts import Layout
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import Corpus
from regard.components.data.text_files import InvalidLine, decode_line
from regard.core.features import STRINGS

# Objects in objects, and structs in structs, in which features are found.
MAX_DEPTH = 10


class _SkippedCellError(Exception):
    """A text is skipped, and so is its row."""


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


def named_layout(
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
