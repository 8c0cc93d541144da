"""CSV files, whose cells may have quotes and line feeds."""

import contextlib
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator

from regard.components.data.read_problems import ReadProblems
from regard.components.data.tables import HEADER_COLUMN, TableFormat, TableRow
from regard.components.data.text_files import InvalidLine, read_blocks
from regard.components.data.unreadable_file import UnreadableFile
from regard.components.settings.data import DataConfig

# In the order in which they are preferred.
_DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}
_SAMPLE_BYTES = 1 << 16
# Characters of a row over several lines, to which a quote that is not closed reads.
_MAX_ROW = 1 << 24


class CsvFormat(TableFormat):
    """CSV files."""

    name = "csv"
    text = "columns with quotes"
    endings = (".csv",)
    keys = {
        "columns": HEADER_COLUMN,
        "header": "",
        "delimiter": "null: detected from tab , ; and |",
        "encoding": "",
    }

    def split_rows(
        self,
        lines: Iterator[str],
        separator: str | None,
        path: str,
        config: DataConfig,
        problems: ReadProblems,
    ) -> tuple[Iterator[TableRow], str]:
        return split_quoted(lines, separator, path, config, problems)


def split_quoted(
    lines: Iterable[str],
    separator: str | None,
    path: str,
    config: DataConfig,
    problems: ReadProblems,
) -> tuple[Iterator[TableRow], str]:
    """Return the rows of a CSV file, and how they are separated; see `TableFormat.split_rows`."""
    head = next(read_blocks(path, _SAMPLE_BYTES), b"")
    sample = head.decode(config.encoding or "utf-8-sig", "replace")
    delimiter = config.delimiter or separator or _find_delimiter(sample, path)
    note = f"{_DELIMITERS.get(delimiter, repr(delimiter))}-separated"
    is_spaced = _quotes_follow_spaces(sample, delimiter)
    if is_spaced:
        note += " with spaces before quotes"
    return _parse_csv(lines, delimiter, path, problems, is_spaced), note


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
) -> Iterator[TableRow]:
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


FORMAT = CsvFormat()
