"""Prints the versions of the registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.core import formatting
from regard.pipeline.cli import terminal

if TYPE_CHECKING:
    from rich.console import Console

    from regard.components.registry.overview import VersionEntry
    from regard.components.registry.prune import PruneResult

_HEADINGS = ("name", "version", "pushed, UTC", "state", "spans", "scores", "decision")
_STYLES = {"live": "green", "withdrawn": "red"}


def print_versions(entries: Sequence[VersionEntry], console: Console) -> None:
    """Print one line per version; in a narrow terminal, scores and decision go below it."""
    rows = [_table_row(entry) for entry in entries]
    terminal.print_table(_HEADINGS, rows, console, wrap_cells=2, colored="state", colors=_STYLES)


def _table_row(entry: VersionEntry) -> tuple[str, ...]:
    return (
        entry.name,
        str(entry.version),
        formatting.format_created(entry.record.created) or "unknown",
        _states(entry),
        formatting.format_spans([span.to_dict() for span in entry.record.spans]),
        ", ".join(
            f"{score.label} {formatting.format_metric(score.value, score.scale)}"
            for score in entry.scores
        ),
        entry.record.blessing,
    )


def _states(entry: VersionEntry) -> str:
    states = {"live": entry.live, "withdrawn": entry.withdrawn, "pinned": entry.pinned}
    states |= {"invalid record": bool(entry.error)}
    if entry.record.rollback_of is not None:
        states |= {f"rolled back to {entry.record.rollback_of}": True}
    return ", ".join(state for state, applies in states.items() if applies)


def print_prune_results(
    name: str, results: Sequence[PruneResult], dry_run: bool, console: Console
) -> None:
    """Print the removed versions, and why the others are kept."""
    removed = [result for result in results if result.kept_because is None]
    verb = "would be removed" if dry_run else "removed"
    for result in results:
        is_removed = result.kept_because is None
        state = verb if is_removed else f"kept: {result.kept_because}"
        style = "red" if is_removed else ""
        terminal.print_text(console, (f"{name}@{result.version}  {state}", style))
    total = formatting.format_bytes(sum(result.bytes for result in removed))
    console.print(f"{formatting.format_count(len(removed), 'version')} ({total}) {verb}.")
