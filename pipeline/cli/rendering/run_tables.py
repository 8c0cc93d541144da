"""Prints the runs of the run store."""

from collections.abc import Sequence

from rich.console import Console

from regard.components.common.run_record import FAILED, KILLED, RUNNING, SUCCEEDED, RunRecord
from regard.core import formatting
from regard.pipeline.cli import terminal

_HEADINGS = ("name", "run", "status", "blessed", "version", "parent", "time", "spans", "scores")
_BLESSED = {True: "yes", False: "no", None: ""}
_STATUS_STYLES = {
    SUCCEEDED: "green",
    RUNNING: "cyan",
    FAILED: "red",
    KILLED: "red",
}


def print_listing(records: Sequence[RunRecord], console: Console) -> None:
    """Print one line per run; in a narrow terminal, the scores follow on a separate line."""
    headings = list(_HEADINGS)
    rows = [_cells(record) for record in records]
    spans = headings.index("spans")
    if not any(row[spans] for row in rows):  # most data sets have none
        for row in (headings, *rows):
            del row[spans]
    terminal.print_table(headings, rows, console, colored="status", colors=_STATUS_STYLES)


def _cells(record: RunRecord) -> list[str]:
    return [
        record.name,
        record.id,
        record.status,
        _BLESSED[record.blessed],
        record.pushed_version or "",
        record.parent or "",
        formatting.format_duration(record.seconds),
        formatting.format_spans(record.data.get("spans", [])),
        ", ".join(map(formatting.format_score, record.scores)),
    ]
