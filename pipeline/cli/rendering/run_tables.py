"""Prints the runs of the run store."""

from collections.abc import Sequence

from rich.console import Console

from regard.core import formatting
from regard.pipeline import run_store
from regard.pipeline.cli import terminal
from regard.pipeline.run_store import RunRecord

_HEADINGS = ("name", "run", "status", "blessed", "version", "parent", "time", "spans", "scores")
_STATUS_STYLES = {
    run_store.SUCCEEDED: "green",
    run_store.RUNNING: "cyan",
    run_store.FAILED: "red",
    run_store.KILLED: "red",
}


def print_listing(records: Sequence[RunRecord], console: Console) -> None:
    """Print one line per run; in a narrow terminal, the scores follow on a separate line."""
    table = [_HEADINGS, *map(_cells, records)]
    spans = _HEADINGS.index("spans")
    if not any(row[spans] for row in table[1:]):  # most datasets have none
        table = [(*row[:spans], *row[spans + 1 :]) for row in table]
    terminal.print_table(table[0], table[1:], console, colored="status", colors=_STATUS_STYLES)


def _cells(record: RunRecord) -> tuple[str, ...]:
    scores = ", ".join(map(formatting.format_score, record.get("scores") or []))
    return (
        record["name"],
        record["id"],
        record["status"],
        {True: "yes", False: "no"}.get(record.get("blessed"), ""),  # type: ignore[arg-type]
        str(record.get("pushed_version") or ""),
        str(record.get("parent") or ""),
        formatting.format_duration(record.get("seconds")),
        formatting.format_spans(record.get("data", {}).get("spans", [])),
        scores,
    )
