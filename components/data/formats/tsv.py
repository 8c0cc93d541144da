"""Tab-separated files, whose cells have no quotes."""

from collections.abc import Iterable, Iterator

from regard.components.data.formats.csv import split_quoted
from regard.components.data.read_problems import ReadProblems
from regard.components.data.tables import HEADER_COLUMN, TableFormat, TableRow
from regard.components.data.text_files import InvalidLine
from regard.components.data.unreadable_file import UnreadableFile
from regard.components.settings.data import DataConfig

# The share of rows with quotes above which they were written by a program: speech has fewer.
_MANY_QUOTES = 0.5


class TsvFormat(TableFormat):
    """Tab-separated files; with ``data.delimiter`` their cells are those of CSV."""

    name = "tsv"
    text = "tab-separated columns without quotes"
    endings = (".tsv",)
    keys = {"columns": HEADER_COLUMN, "header": "", "delimiter": "null: tab", "encoding": ""}

    def split_rows(
        self,
        lines: Iterator[str],
        separator: str | None,
        path: str,
        config: DataConfig,
        problems: ReadProblems,
    ) -> tuple[Iterator[TableRow], str]:
        if config.delimiter is not None:
            return split_quoted(lines, separator, path, config, problems)
        if separator not in (None, "\t"):
            message = f"the first line says that {separator!r} separates columns, not tabs"
            raise UnreadableFile(path, message, "Set `data.format: csv`.", 1)
        return _split_at_tabs(lines, path, problems), ""


def _split_at_tabs(lines: Iterable[str], path: str, problems: ReadProblems) -> Iterator[TableRow]:
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


FORMAT = TsvFormat()
