"""The columns of a file that hold the features of a row, and its header row.

Columns are found by their names. The order of a table counts only if it has no names and as many
columns as are read; what can be read in several ways is an error that lists them.
"""

from collections.abc import Sequence

from regard.components.data.column_matching import find_name, match_columns, rank_columns
from regard.components.data.column_remedies import columns_line, columns_remedy
from regard.components.data.headers import misplaced_name
from regard.components.data.sources import Corpus
from regard.components.data.unreadable_file import UnreadableFile
from regard.core.features import Feature
from regard.core.formatting import truncate


class MissingColumn(UnreadableFile):
    """A file has no column for a feature.

    Args:
        file: the file.
        feature: the name of the feature.
        text: what is wrong.
        remedy: how to fix it.
        line: the line of the first row of a table.
    """

    def __init__(self, file: str, feature: str, text: str, remedy: str, line: int | None = None):
        super().__init__(file, text, remedy, line)
        self.feature = feature

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        problem = self.problem
        return type(self), (problem.file, self.feature, self.message, self.remedy, problem.line)


def column_indices(
    corpus: Corpus, path: str, names: Sequence[str], line: int | None = None, header: bool = True
) -> list[int | None]:
    """Return the index of the column of each feature; None for an optional feature without one.

    Args:
        corpus: its features and the section ``data``.
        path: the file, for errors.
        names: the names of all columns; of a table without a header its first row.
        line: the line of the first row of a table; None for other files.
        header: whether the file contains the names; otherwise features are in order.

    Raises:
        UnreadableFile: a column is missing, names can be read in several ways, or a table without
            names has more columns than features.
    """
    if corpus.config.columns is not None:
        return _chosen_indices(corpus, path, names if header else [""] * len(names), line)
    if not header:
        return _ordered_indices(corpus, path, names, line)
    matches = match_columns(corpus, names)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ambiguous_names(corpus, path, names, matches, line)
    missing = _missing_feature(corpus, names)
    text = f"{'there is' if line is None else 'the first row has'} no column for {missing}"
    text += f". The columns are {truncate(', '.join(names), 200)}"
    raise MissingColumn(path, missing, text, columns_remedy(corpus, names, missing), line)


def ambiguous_names(
    corpus: Corpus,
    path: str,
    names: Sequence[str],
    matches: Sequence[Sequence[int | None]],
    line: int | None,
) -> UnreadableFile:
    """Return the error of names that can be read in several ways, with two of them."""
    ways = [columns_line(corpus, match, names) for match in matches[:2]]
    if ways[0] == ways[1]:
        chosen = {names[i] for match in matches for i in match if i is not None}
        return _repeated_name(
            path, next(n for n in names if n in chosen and names.count(n) > 1), line
        )
    listed = truncate(", ".join(names), 200)
    message = f"the columns ({listed}) do not show which is which"
    return UnreadableFile(path, message, f"Set {' or '.join(ways)}.", line)


def _repeated_name(path: str, name: str, line: int | None) -> UnreadableFile:
    remedy = "Give the columns different names."
    if line is not None:
        remedy = "Set `data.header: true`, and `data.columns` to the numbers of the columns."
    return UnreadableFile(path, f"several columns have the name {name!r}", remedy, line)


def _missing_feature(corpus: Corpus, names: Sequence[str]) -> str:
    """Return a required feature without a column, of several the first."""
    required = [feature for feature in corpus.features if not feature.optional]
    missing = (f for f in required if not rank_columns(corpus, f, names))
    return next(missing, required[-1]).name


def _chosen_indices(
    corpus: Corpus, path: str, names: Sequence[str], line: int | None
) -> list[int | None]:
    """Return the columns that ``data.columns`` names."""
    columns = corpus.config.columns or {}
    indices: list[int | None] = []
    for feature in corpus.features:
        column = columns.get(feature.name)
        index = find_name(column, names) if isinstance(column, str) else (column or 0) - 1
        if isinstance(column, str) and names.count(column) > 1:
            raise _repeated_name(path, column, line)
        if column is None:
            indices.append(None)
        elif index is not None and 0 <= index < len(names):
            indices.append(index)
        else:
            raise _missing_column(corpus, path, names, feature, column, line)
    return indices


def _missing_column(
    corpus: Corpus,
    path: str,
    names: Sequence[str],
    feature: Feature,
    column: int | str,
    line: int | None,
) -> MissingColumn:
    text = "there is" if line is None else "the first row has"
    text += f" no column {column!r} for {feature.name}"
    remedy = columns_remedy(corpus, names, str(column))
    if line is not None and len(names) == 1:
        remedy = _separator_remedy()
    return MissingColumn(path, feature.name, text, remedy, line)


def _separator_remedy() -> str:
    return (
        "Tabs separate the columns of tsv files. If another character does, set "
        "`data.format: csv`, and if necessary `data.delimiter`."
    )


def _ordered_indices(
    corpus: Corpus, path: str, cells: Sequence[str], line: int | None
) -> list[int | None]:
    """Return the columns of a table without names, in the order of the features."""
    features, width = corpus.features, len(cells)
    for position, feature in enumerate(features, 1):
        if position > width and not feature.optional:
            text = f"the first row has no column {position} for {feature.name}"
            remedy = _separator_remedy()
            if width > 1:
                remedy = columns_remedy(corpus, [""] * width, str(position))
            raise MissingColumn(path, feature.name, text, remedy, line)
    if width > len(features):
        order = ", ".join(feature.name for feature in features)
        text = f"the table has {width} columns without names, and {len(features)} are read: {order}"
        raise SurplusColumns(path, text, "Set `data.columns`.", line)
    if other := misplaced_name(corpus, cells):
        text = f"the first row ({truncate(', '.join(cells))}) may hold the names of the columns: "
        text += f"{other} stands where another feature is read"
        remedy = "Set `data.header: false` if it is a row, otherwise `data.header: true` and "
        remedy += "`data.columns`."
        raise UnreadableFile(path, text, remedy, line)
    return [i if i < width else None for i in range(len(features))]


class SurplusColumns(UnreadableFile):
    """A table without names has more columns than features."""
