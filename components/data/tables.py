"""The rows of tab-separated and CSV files."""

import contextlib
import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from regard.components.data.column_fit import SAMPLE_ROWS, fitting_columns
from regard.components.data.column_remedies import columns_setting
from regard.components.data.columns import SurplusColumns, column_indices
from regard.components.data.headers import clean_name, is_header
from regard.components.data.layouts import Layout
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.text_files import InvalidLine, read_blocks, read_lines
from regard.components.data.unreadable_file import UnreadableFile
from regard.core.features import Feature
from regard.core.formatting import format_count, truncate

# The line, from 1, and the cells of a row in the order of the features. The cells are None if the
# row is skipped and its problem recorded; a cell is None if it is missing.
Cells = tuple[int, Sequence[Any] | None]

# In the order in which they are preferred.
_DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}
_SAMPLE_BYTES = 1 << 16
# The share of rows with quotes above which they were written by a program: speech has fewer.
_MANY_QUOTES = 0.5
# The first line of tables that Excel reads with this delimiter; spreadsheets may quote or pad it.
_SEPARATOR_LINE = re.compile(r'"?sep=(?P<delimiter>[^"\s]|\t)"?(?P=delimiter)*', re.IGNORECASE)
# Characters of a row over several lines, to which a quote that is not closed reads.
_MAX_ROW = 1 << 24


def read_table(group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
    """Yield the rows of a table; a row with line feeds in quotes has the number of its first."""
    (path,) = group.files
    rows, separator = _open_table(group, corpus, problems)
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
                description = f"header: {truncate(', '.join(names))}" if has_header else "no header"
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


def _split_at_tabs(
    lines: Iterable[str], path: str, problems: ReadProblems
) -> Iterator[tuple[int, list[str] | None]]:
    """Yield the cells of each line; note at the end if a program wrote quotes around cells."""
    line = quoted = escaped = 0
    for line, text in enumerate(lines, 1):
        if isinstance(text, InvalidLine):
            yield line, None
            continue
        cells = text.split("\t")
        if '"' in text:
            within = [cell for cell in cells if len(cell) > 1 and cell[0] == cell[-1] == '"']
            quoted += bool(within)
            escaped += any(_has_doubled_quotes(cell[1:-1]) for cell in within)
        yield line, cells
    if escaped or (line and quoted / line > _MANY_QUOTES):
        note = f"quotes around texts are read as text ({quoted:,} of {line:,} rows have them)"
        remedy = '`data.format: csv` and `data.delimiter: "\\t"` remove them'
        problems.formats.setdefault(f"{note}; {remedy}", path)


def _has_doubled_quotes(text: str) -> bool:
    """Return whether a text has quotes, all of them doubled, as programs write them in quotes."""
    return '"' in text and '"' not in text.replace('""', "")


def _split_separator_line(lines: Iterator[str]) -> tuple[str | None, Iterator[str]]:
    """Return the delimiter that a first line such as ``sep=;`` names, and the lines after it.

    Without that line, the delimiter is None, and the lines are all lines.
    """
    first = list(itertools.islice(lines, 1))
    match = _SEPARATOR_LINE.fullmatch(first[0]) if first else None
    return (match["delimiter"], lines) if match else (None, itertools.chain(first, lines))


def _open_table(
    group: FileGroup, corpus: Corpus, problems: ReadProblems
) -> tuple[Iterator[tuple[int, list[str] | None]], str]:
    """Return the rows of a table, None for one that is skipped, and the separator of CSV.

    Raises:
        UnreadableFile: the first line of a tsv file names another delimiter than the tab.
    """
    (path,), config = group.files, corpus.config
    lines = read_lines(path, problems, encoding=config.encoding)
    separator, lines = _split_separator_line(lines)
    rows: Iterator[tuple[int, list[str] | None]]
    name = ""
    if group.format == "tsv" and config.delimiter is None:
        if separator not in (None, "\t"):
            message = f"the first line says that {separator!r} separates columns, not tabs"
            raise UnreadableFile(path, message, "Set `data.format: csv`.", 1)
        rows = _split_at_tabs(lines, path, problems)
    else:
        head = next(read_blocks(path, _SAMPLE_BYTES), b"")
        sample = head.decode(config.encoding or "utf-8-sig", "replace")
        delimiter = config.delimiter or separator or _find_delimiter(sample, path)
        name = f"{_DELIMITERS.get(delimiter, repr(delimiter))}-separated"
        is_spaced = _quotes_follow_spaces(sample, delimiter)
        if is_spaced:
            name += " with spaces before quotes"
        rows = _parse_csv(lines, delimiter, path, problems, is_spaced)
    if separator is not None:
        rows = ((line + 1, cells) for line, cells in rows)
    return rows, name


def _sample(
    rows: Iterable[tuple[int, list[str] | None]], width: int, count: int
) -> list[list[str]]:
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


def order_remedy(group: FileGroup, corpus: Corpus) -> str | None:
    """Return the order in which a table is read, and the setting that fits it, if another does."""
    (path,), problems = group.files, ReadProblems()
    with contextlib.suppress(UnreadableFile):
        rows, _ = _open_table(group, corpus, problems)
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


def _find_delimiter(sample: str, path: str) -> str:
    """Return the delimiter with which most rows have as many columns as the first one.

    Raises:
        UnreadableFile: there are two.
    """
    by_delimiter = {delimiter: _regularity(sample, delimiter) for delimiter in _DELIMITERS}
    best = [
        delimiter
        for delimiter, share in by_delimiter.items()
        if share == max(by_delimiter.values())
    ]
    if len(best) == 1 or not any(by_delimiter.values()):
        return best[0]
    signs = " and ".join(_DELIMITERS[delimiter] for delimiter in best)
    message = f"several characters can separate the columns: {signs}"
    choices = " or ".join(f"`data.delimiter: {json.dumps(delimiter)}`" for delimiter in best)
    raise UnreadableFile(path, message, f"Set {choices}.", 1)


def _regularity(sample: str, delimiter: str) -> float:
    """Return the share of rows with as many columns as the first row; 0 for a single column."""
    widths: list[int] = []
    with contextlib.suppress(csv.Error):  # also where the sample ends within quotes
        reader = csv.reader(
            io.StringIO(sample, newline=""),
            delimiter=delimiter,
            strict=True,
            skipinitialspace=_quotes_follow_spaces(sample, delimiter),
        )
        widths.extend(len(cells) for cells in reader if cells)
    return widths.count(widths[0]) / len(widths) if widths and widths[0] > 1 else 0.0


def _quotes_follow_spaces(sample: str, delimiter: str) -> bool:
    """Return whether the cells of a table are written like ``"a", "b"``."""
    pattern = f'^"(?:[^"\n]|"")*"{re.escape(delimiter)} +"'
    return delimiter != " " and re.search(pattern, sample, re.MULTILINE) is not None


def _parse_csv(
    lines: Iterable[str], delimiter: str, path: str, problems: ReadProblems, is_spaced: bool
) -> Iterator[tuple[int, list[str] | None]]:
    """Yield each row with its first line; None for a row that is skipped.

    Args:
        lines: the lines of the file.
        delimiter: the character between cells.
        path: the file.
        problems: where rows that are skipped are recorded.
        is_spaced: whether spaces after a delimiter are not part of the next cell.

    Raises:
        UnreadableFile: quotes over several lines are wrong, so that it is unclear where rows end.
    """
    csv.field_size_limit(1 << 26)  # of the process: as long as a line may be, instead of 128 KiB
    texts: list[str] = []  # the lines of a row
    size = 0

    def terminated() -> Iterator[str]:
        nonlocal size
        for text in lines:
            texts.append(text)
            size += len(text) + 64  # bytes of an empty text
            if size > _MAX_ROW and len(texts) > 1:
                raise csv.Error("it is too long")
            yield f"{text}\n"

    reader = csv.reader(terminated(), delimiter=delimiter, strict=True, skipinitialspace=is_spaced)
    while True:
        texts.clear()
        size = 0
        line = reader.line_num + 1
        cells: list[str] | None = None
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if len(texts) > 1 or texts[0].count('"') % 2:
                message = f"the quotes of the row that begins here are wrong: {error}"
                remedy = 'Close each quote, and write a quote in a quoted text as `""`.'
                raise UnreadableFile(path, message, remedy, line) from None
            reason = "a cell without quotes has a carriage return (CR)"
            reason = reason if "\r" in texts[0] else str(error)
            problems.add(path, line, f"not CSV: {reason}")
        if InvalidLine in map(type, texts):
            cells = None
        if cells != []:  # a blank line is not a row
            yield line, cells
