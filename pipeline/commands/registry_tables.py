"""How the versions of the registry are printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from rich.text import Text

from components.words import counted, figure, rows_of, size, some_spans
from pipeline.commands import terminal
from pipeline.commands.run_tables import moment
from pipeline.summary import print_rows

if TYPE_CHECKING:
    from rich.console import Console

    from components.registry.pruning import Verdict

_HEADINGS = ("name", "version", "pushed, UTC", "state", "spans", "scores", "blessing")
_STYLES = {"live": "green", "withdrawn": "red"}


def print_listing(entries: Sequence[dict[str, Any]], console: Console) -> None:
    """One line a version; where a terminal is too narrow, scores and blessing stand below it."""

    def style(row: Sequence[str]) -> tuple[int, str] | None:
        found = next((word for word in _STYLES if row[3].startswith(word)), None)
        return (3, _STYLES[found]) if found else None

    rows = [_listed(entry) for entry in entries]
    terminal.print_table(_HEADINGS, rows, console, below=2, style=style)


def _listed(entry: dict[str, Any]) -> tuple[str, ...]:
    return (
        entry["name"],
        str(entry["version"]),
        _when(entry),
        ", ".join(_states(entry)),
        some_spans(entry.get("spans", ())),
        ", ".join(f"{label} {value}" for label, value in _scores(entry)),
        entry.get("blessing", ""),
    )


def _states(entry: dict[str, Any]) -> Iterator[str]:
    for state in ("live", "withdrawn", "pinned"):
        if entry[state]:
            yield state
    if "unreadable" in entry:
        yield "record unreadable"
    if "rollback_of" in entry:
        yield f"rolled back to {entry['rollback_of']}"


def _when(entry: dict[str, Any]) -> str:
    try:
        return moment(datetime.fromisoformat(entry["created"]).astimezone(timezone.utc).timestamp())
    except (KeyError, ValueError):
        return "unknown"


def _scores(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for score in entry["scores"]:
        yield score["label"], figure(score["value"], score.get("scale", 1.0))


def print_version(entry: dict[str, Any], console: Console) -> None:
    """All that is told of one version."""
    print_rows(list(_facts(entry)), console)


def _facts(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "model", f"{entry['name']}@{entry['version']}"
    yield "state", ", ".join(_states(entry)) or "not served by default: there is a newer version"
    if "unreadable" in entry:
        yield "record", entry["unreadable"]
    yield "folder", f"{entry['path']}  {size(entry['bytes'])}"
    by = f"by run {entry['run']}" if "run" in entry else ""
    if "rollback_of" in entry:
        reason = f": {entry['reason']}" if "reason" in entry else ""
        instead = f"instead of {entry['name']}@{entry['rolled_back_from']}{reason}"
        yield "since", f"{_when(entry)} UTC, {instead}"
        yield "made", ", ".join(filter(None, (f"as {entry['name']}@{entry['rollback_of']}", by)))
    else:
        yield "pushed", ", ".join(filter(None, (f"{_when(entry)} UTC", by)))
    for index, score in enumerate(entry["scores"]):
        label, value = score["label"], figure(score["value"], score.get("scale", 1.0))
        yield "" if index else "scores", f"{label} {value}  {score.get('signature', '')}".rstrip()
    if entry.get("blessing"):
        yield "blessing", entry["blessing"]
    if entry.get("compared_with"):
        yield "compared", f"with {entry['name']}@{entry['compared_with']}"
    if start := entry.get("warm_start", {}).get("start"):
        yield "started", f"from the weights of {start['model']}"
    yield from _data(entry)
    if commit := entry.get("regard", {}).get("commit"):
        yield "code", f"commit {commit[:12]}{commit[40:]}"
    yield "more", f"regard lineage {entry['name']}@{entry['version']}"


def _data(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    told = [rows_of(entry)] if entry.get("rows") else []
    if print_ := entry.get("data_fingerprint"):
        told.append(f"fingerprint {print_[:12]}")
    if told:
        yield "data", ", ".join(told)
    for span in entry.get("spans", ()):
        version = "" if span.get("version") is None else f", version {span['version']}"
        facts = f"{rows_of(span)}, fingerprint {span.get('fingerprint', '')[:12]}"
        yield "", f"span {span['name']}{version}: {facts}"


def print_pruned(name: str, verdicts: Sequence[Verdict], dry_run: bool, console: Console) -> None:
    """What was removed, or would be, and why the others stay."""
    gone = [verdict for verdict in verdicts if verdict.kept is None]
    for verdict in verdicts:
        done = "would be removed" if dry_run else "removed"
        state = done if verdict.kept is None else f"stays: {verdict.kept}"
        console.print(
            Text(f"{name}@{verdict.version}  {state}", "red" if verdict in gone else ""),
            soft_wrap=True,
        )
    for verdict in gone:
        if verdict.left:
            left = f"could not be removed as a whole: {verdict.left} is tried again another time"
            console.print(f"{name}@{verdict.version} {left}.", soft_wrap=True)
    total = size(sum(verdict.bytes for verdict in gone))
    console.print(
        f"{counted(len(gone), 'version')}, {total}, {'would be' if dry_run else 'are'} removed."
    )
