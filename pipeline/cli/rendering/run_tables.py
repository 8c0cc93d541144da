"""Tables of runs: folded to the width of a terminal, otherwise one unbroken line per row."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from regard.components.common import formatting
from regard.pipeline import run_store
from regard.pipeline.cli import terminal
from regard.pipeline.progress import NodeFacts
from regard.pipeline.run_diff import Entry
from regard.pipeline.run_store import RunRecord

_HEADINGS = ("name", "run", "status", "blessed", "version", "parent", "time", "spans", "scores")
_STATUS_STYLES = {
    run_store.SUCCEEDED: "green",
    run_store.RUNNING: "cyan",
    run_store.FAILED: "red",
    run_store.KILLED: "red",
}
_GAP = "  "
_ABSENT = "-"
_FINDING = "warning"


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


def print_diff(diff: Entry, console: Console) -> None:
    """Print the difference of two runs as one table with headings."""
    rows = list(_rows(diff))
    if not console.is_terminal:  # logs and pipes have no width
        # Warnings are whole sentences, which must not widen the columns.
        texts = [[cell.plain for cell in row] for row in rows]
        cells = [row for row in texts if row[0].strip() != _FINDING]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in texts:
            terminal.print_text(console, _GAP.join(map(str.ljust, line, widths)).rstrip())
        return
    width = max(row[0].cell_len for row in rows)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, len(_GAP), 0, 0))
    table.add_column(overflow="fold", width=min(width, console.width // 3))
    for _ in "ab":
        table.add_column(overflow="fold")
    table.add_column()
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _row(label: str, sides: Sequence[str], note: str = "", style: str = "") -> list[Text]:
    """Return the cells of a row: a label, the values of both runs, and a note with its style."""
    return [Text(f"  {label}"), *map(Text, sides), Text(note, style)]


def _heading(label: str, a: str = "", b: str = "", note: str = "") -> list[Text]:
    return [Text(label, "bold"), *map(Text, (a, b, note))]


def _rows(diff: Entry) -> Iterator[list[Text]]:
    a, b = diff["a"], diff["b"]
    names, ids = zip(*(side["run"].split("/") for side in (a, b)), strict=True)
    is_same = names[0] == names[1]
    yield _heading(names[0], *ids) if is_same else _heading("run", a["run"], b["run"])
    yield _row("status", [side["status"] for side in (a, b)])
    starts = [
        formatting.format_time(side["started"]) if "started" in side else _ABSENT for side in (a, b)
    ]
    yield _row("started, UTC", starts)
    yield _row("time", [formatting.format_duration(side.get("seconds")) for side in (a, b)])
    for label, key in (("version", "pushed_version"), ("baseline version", "parent")):
        if a.get(key) or b.get(key):
            yield _row(label, [str(side.get(key) or _ABSENT) for side in (a, b)])
    yield from _section("configuration", diff["config"])
    yield from _data_rows(diff["data"])
    if diff["scores"]:
        # Perhaps only the training data differ, so the scores may still be comparable.
        doubt = "" if diff["data"]["same"] else "(test data may differ)"
        yield _heading("scores", "value [interval]", doubt, "difference")
        yield from map(_score_row, diff["scores"])
    if diff["nodes"]:
        yield _heading("nodes", "time, peak memory")
        for node in diff["nodes"]:
            yield _row(node["name"], [_cost(node.get("a")), _cost(node.get("b"))])
    yield from _section("code", diff["regard"])
    yield from _section("libraries", diff["stack"])
    yield from _section("machine", diff["machine"])


def _section(name: str, entries: Sequence[Entry]) -> Iterator[list[Text]]:
    yield _heading(name, "" if entries else "identical")
    for entry in entries:
        yield _row(entry["key"], [side_text(entry, side) for side in "ab"])


def side_text(entry: Mapping[str, Any], side: str) -> str:
    """The value of one side, or a dash if it has no such key."""
    return value_text(entry["key"], entry[side]) if side in entry else _ABSENT


def value_text(key: str, value: Any) -> str:
    """Format a value of a configuration or a record."""
    if key == "memory_bytes":
        return formatting.format_bytes(value)
    if key == "commit":  # 40 characters, and a suffix for uncommitted changes
        return value[:12] + value[40:]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _data_rows(data: Entry) -> Iterator[list[Text]]:
    a, b = data["a"], data["b"]
    yield _heading("data", "identical" if data["same"] else "")
    if not data["same"]:
        yield _row("fingerprint", [(side["fingerprint"] or "unknown")[:12] for side in (a, b)])
    if a["spans"] != b["spans"]:
        yield _row("spans", [formatting.format_spans(side["spans"]) or _ABSENT for side in (a, b)])
    for split in dict.fromkeys([*a["rows"], *b["rows"]]):
        counts = [side["rows"].get(split) for side in (a, b)]
        if not data["same"] or counts[0] != counts[1]:
            texts = [_ABSENT if count is None else f"{count:,}" for count in counts]
            yield _row(f"{split} rows", texts)
    for text in a["findings"]:
        yield _row(_FINDING, (text, _ABSENT))
    for text in b["findings"]:
        yield _row(_FINDING, (_ABSENT, text))


def _score_row(score: Entry) -> list[Text]:
    scale = score["scale"]
    values = (score.get("a"), score.get("b"))
    sides = [formatting.value_with_interval(side, scale) if side else _ABSENT for side in values]
    if score.get("comparable") is False:
        return _row(score["label"], sides, "different signature", "yellow")
    if "difference" not in score:
        return _row(score["label"], sides)
    if not score["difference"]:
        return _row(score["label"], sides, "identical")
    note = f"{score['difference']:+.{formatting.metric_digits(scale)}f}"
    if "intervals_overlap" in score:
        note += f", intervals {'overlap' if score['intervals_overlap'] else 'disjoint'}"
    style = {"a": "red", "b": "green"}.get(score.get("better", ""), "")
    return _row(score["label"], sides, note, style)


def _cost(facts: NodeFacts | None) -> str:
    if facts is None:
        return _ABSENT
    if facts["state"] != "done":
        return facts["state"]
    peak = f", {formatting.format_bytes(facts['peak_bytes'])}" if "peak_bytes" in facts else ""
    return formatting.format_duration(facts.get("seconds")) + peak


def format_created(text: str) -> str:
    """Format the creation time of a version, ISO 8601, as a UTC time; empty if it is not known."""
    try:
        return formatting.format_time(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return ""
