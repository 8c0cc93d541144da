"""Rows of tables: files of text in columns, perhaps with a header."""

import contextlib
import itertools
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from regard.components.data.column_fit import SAMPLE_ROWS, fitting_columns
from regard.components.data.column_remedies import columns_setting
from regard.components.data.columns import SurplusColumns, column_indices
from regard.components.data.formats.base import Cells, DataFormat
from regard.components.data.headers import clean_name, is_header
from regard.components.data.layouts import Layout
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.text_files import read_lines
from regard.components.data.unreadable_file import UnreadableFile
from regard.components.settings.data import DataConfig
from regard.core.features import Feature
from regard.core.formatting import format_count, truncate

# The line, from 1, and the cells of a row; None for a row that is skipped, its problem recorded.
TableRow = tuple[int, list[str] | None]
# What ``data.columns`` gives in a table.
HEADER_COLUMN = "a number from 1, or a name in the header row"
# The first line of tables that Excel reads with this delimiter; spreadsheets may quote or pad it.
_SEPARATOR_LINE = re.compile(r'"?sep=(?P<delimiter>[^"\s]|\t)"?(?P=delimiter)*', re.IGNORECASE)


class TableFormat(DataFormat):
    """A format whose files are tables of text."""

    holds_text = True
    numbers_columns = True

    @abstractmethod
    def split_rows(
        self,
        lines: Iterator[str],
        separator: str | None,
        path: str,
        config: DataConfig,
        problems: ReadProblems,
    ) -> tuple[Iterator[TableRow], str]:
        """Return the rows of a file, and how its columns are separated, for the user.

        Args:
            lines: The lines of the file, without one that names the delimiter.
            separator: The delimiter that the first line names; None without it.
            path: The file.
            config: The section ``data``.
            problems: Receives rows that are skipped, and notes.

        Raises:
            UnreadableFile: It is unclear where cells or rows end.
        """

    def read(self, group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
        """Yield the rows of a table; one with line feeds in quotes has the number of its first."""
        (path,) = group.files
        rows, separator = self._open(group, corpus, problems)
        notes = [separator] if separator else []
        indices: list[int | None] = []
        header: Sequence[str] | None = None
        width, rule = 0, ""
        is_wide = sum(not feature.optional for feature in corpus.features) > 1
        for line, cells in rows:
            if is_wide and cells is not None and len(cells) == 1 and not cells[0].strip():
                continue  # a blank line, as at the end of some files, is not a row
            if header is not None and cells == header:
                note = "rows that repeat the header are left out, as of files that were joined"
                problems.formats.setdefault(note, path)
                continue
            if cells is not None and not width:
                width, has_header = len(cells), is_header(cells, corpus)
                names = list(map(clean_name, cells)) if has_header else cells
                try:
                    indices = column_indices(corpus, path, names, line, has_header)
                except SurplusColumns as error:
                    sample = [cells, *_sample(rows, width, SAMPLE_ROWS)]
                    raise _with_remedy(error, corpus.features, sample) from None
                rule = f"as the {'header' if has_header else 'first row'} (line {line})"
                if has_header or notes:
                    description = (
                        f"header: {truncate(', '.join(names))}" if has_header else "no header"
                    )
                    problems.formats.setdefault(", ".join([*notes, description]), path)
                problems.layouts.append(_layout(path, corpus, indices, names if has_header else []))
                if has_header:
                    header = cells
                    continue
            if cells is not None and len(cells) != width:
                columns = format_count(len(cells), "column")
                text = truncate("\t".join(cells))
                problems.add(path, line, f"{columns} instead of {width} {rule}: {text!r}")
                cells = None
            if cells is None:
                yield line, None
            else:
                yield line, [None if index is None else cells[index] for index in indices]

    def remedy(self, group: FileGroup, corpus: Corpus) -> str | None:
        """Return the order in which a table is read, and a setting that fits it better, if any."""
        (path,), problems = group.files, ReadProblems()
        with contextlib.suppress(UnreadableFile):
            rows, _ = self._open(group, corpus, problems)
            cells = next((cells for _, cells in rows if cells is not None), None)
            if cells is None:
                return None
            has_header = is_header(cells, corpus)
            indices = column_indices(corpus, path, list(map(clean_name, cells)), 1, has_header)
            sample = [] if has_header else [cells]
            sample += _sample(rows, len(cells), SAMPLE_ROWS)
            text = f"The order was {columns_setting(corpus.features, indices)}."
            columns = fitting_columns(corpus.features, sample)
            if columns is None or columns == indices:
                return f"{text} Check `data.columns` and `data.format`."
            return f"{text} Set {columns_setting(corpus.features, columns)}."
        return None

    def _open(
        self, group: FileGroup, corpus: Corpus, problems: ReadProblems
    ) -> tuple[Iterator[TableRow], str]:
        """Return the rows of a table with their lines, and how its columns are separated."""
        (path,), config = group.files, corpus.config
        lines = read_lines(path, problems, encoding=config.encoding)
        separator, lines = _split_separator_line(lines)
        rows, note = self.split_rows(lines, separator, path, config, problems)
        if separator is not None:
            rows = ((line + 1, cells) for line, cells in rows)
        return rows, note


def _split_separator_line(lines: Iterator[str]) -> tuple[str | None, Iterator[str]]:
    """Return the delimiter that a first line such as ``sep=;`` names, and the lines after it.

    Without that line, the delimiter is None, and the lines are all lines.
    """
    first = list(itertools.islice(lines, 1))
    match = _SEPARATOR_LINE.fullmatch(first[0]) if first else None
    return (match["delimiter"], lines) if match else (None, itertools.chain(first, lines))


def _sample(rows: Iterable[TableRow], width: int, count: int) -> list[list[str]]:
    """Return some of the rows with the right number of columns."""
    valid = (cells for _, cells in rows if cells is not None and len(cells) == width)
    return list(itertools.islice(valid, count))


def _with_remedy(
    error: UnreadableFile, features: Sequence[Feature], rows: Sequence[Sequence[str]]
) -> UnreadableFile:
    """Return an error with the columns that fit the features."""
    columns = fitting_columns(features, rows)
    if columns is None:
        remedy = "Set `data.columns` to the numbers of the columns."
    else:
        remedy = f"Set {columns_setting(features, columns)}. `data.extra` reads more columns."
    problem = error.problem
    return UnreadableFile(problem.file, problem.text, remedy, problem.line)


def _layout(
    path: str, corpus: Corpus, indices: Sequence[int | None], names: Sequence[str]
) -> Layout:
    positions = {
        feature.name: index + 1
        for feature, index in zip(corpus.features, indices, strict=True)
        if index is not None
    }
    columns = {
        name: (names[position - 1] if names else "") or str(position)
        for name, position in positions.items()
    }
    used = set(positions.values())
    unused = [name for i, name in enumerate(names, 1) if name and i not in used]
    return Layout(path, columns, positions, bool(names), unused)
