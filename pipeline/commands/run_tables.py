"""How runs are printed: folded to the width of a terminal, one unbroken line a row elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.table import Table
from rich.text import Text

from components.words import digits, figure, size, some_spans
from pipeline import runs
from pipeline.commands import terminal
from pipeline.live import duration

if TYPE_CHECKING:
    from rich.console import Console

_HEADINGS = ("name", "run", "status", "blessed", "version", "parent", "time", "spans", "scores")
_STATUS_STYLES = {
    runs.SUCCEEDED: "green",
    runs.RUNNING: "cyan",
    runs.FAILED: "red",
    runs.KILLED: "red",
}
_GAP = "  "
_ABSENT = "-"
_FINDING = "finding"


def print_listing(records: Sequence[dict[str, Any]], console: Console) -> None:
    """One line a run; where a terminal is too narrow, the scores stand below their run."""

    def style(row: Sequence[str]) -> tuple[int, str] | None:
        return (2, _STATUS_STYLES[row[2]]) if row[2] in _STATUS_STYLES else None

    table = [_HEADINGS, *map(_listed, records)]
    place = _HEADINGS.index("spans")
    if not any(row[place] for row in table[1:]):  # most corpora do not grow
        table = [(*row[:place], *row[place + 1 :]) for row in table]
    terminal.print_table(table[0], table[1:], console, style=style)


def _listed(record: dict[str, Any]) -> tuple[str, ...]:
    scores = ", ".join(
        f"{score.get('label', score['name'])} {figure(score['value'], score.get('scale', 100.0))}"
        for score in record.get("scores") or []
    )
    return (
        record["name"],
        record["id"],
        record["status"],
        {True: "yes", False: "no"}.get(record.get("blessed"), ""),  # type: ignore[arg-type]
        str(record.get("pushed_version") or ""),
        str(record.get("parent") or ""),
        duration(record.get("seconds")),
        some_spans(record.get("data", {}).get("spans", [])),
        scores,
    )


class Row(NamedTuple):
    """What is told, of run a and of run b, and what may be said of both."""

    what: str
    sides: Sequence[str] = ("", "")
    note: str = ""
    style: str = ""  # of the note
    top: bool = False  # begins a part of the table

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of its four columns."""
        return (self.what if self.top else f"  {self.what}", *self.sides, self.note)


def print_difference(found: dict[str, Any], console: Console) -> None:
    """What ``pipeline.difference`` found, as one table in parts."""
    rows = list(_rows(found))
    # Findings are whole sentences: they may be wider than their column, and make no other so.
    cells = [row.cells for row in rows if row.what != _FINDING]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if not console.is_terminal:  # a log or a pipe has no width
        for row in rows:
            line = _GAP.join(map(str.ljust, row.cells, widths)).rstrip()
            console.print(Text(line), soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, len(_GAP), 0, 0))
    table.add_column(overflow="fold", width=min(widths[0], console.width // 3))
    for _ in "ab":
        table.add_column(overflow="fold")
    table.add_column()
    for row in rows:
        styles = "bold" if row.top else "", "", "", row.style
        table.add_row(*map(Text, row.cells, styles))
    console.print(table)


def _rows(found: dict[str, Any]) -> Iterator[Row]:
    a, b = found["a"], found["b"]
    names, ids = zip(*(side["run"].split("/") for side in (a, b)), strict=True)
    if names[0] == names[1]:
        yield Row(names[0], ids, top=True)
    else:
        yield Row("run", (a["run"], b["run"]), top=True)
    yield Row("status", [side["status"] for side in (a, b)])
    yield Row("started, UTC", [moment(side.get("started")) for side in (a, b)])
    yield Row("time", [duration(side.get("seconds")) for side in (a, b)])
    for name, key in (("pushed version", "pushed_version"), ("compared with", "parent")):
        if a.get(key) or b.get(key):
            yield Row(name, [side.get(key, _ABSENT) for side in (a, b)])
    yield from _part("config", found["config"])
    yield from _data_rows(found["data"])
    if found["scores"]:
        # Perhaps only what is trained on differs, so other data do not make scores incomparable.
        doubt = "" if found["data"]["same"] else "perhaps of other rows"
        yield Row("scores", ("value [interval]", doubt), note="difference", top=True)
        yield from map(_score_row, found["scores"])
    if found["nodes"]:
        yield Row("nodes", ("time, peak memory", ""), top=True)
        for node in found["nodes"]:
            yield Row(node["name"], [_took(node.get(side)) for side in "ab"])
    for part, name in (("regard", "code"), ("stack", "libraries"), ("machine", "machine")):
        yield from _part(name, found[part])


def _part(name: str, entries: Sequence[dict[str, Any]]) -> Iterator[Row]:
    yield Row(name, ("" if entries else "the same", ""), top=True)
    for entry in entries:
        yield Row(entry["key"], [side_text(entry, side) for side in "ab"])


def side_text(entry: dict[str, Any], side: str) -> str:
    """What one side has for the key of an entry, or that it has no such key."""
    return value_text(entry["key"], entry[side]) if side in entry else _ABSENT


def value_text(key: str, value: Any) -> str:
    """A value of a configuration or a record as a person reads it."""
    if key == "memory_bytes":
        return size(value)
    if key == "commit":  # a hash of 40 characters, perhaps with a sign behind it
        return value[:12] + value[40:]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _data_rows(data: dict[str, Any]) -> Iterator[Row]:
    a, b = data["a"], data["b"]
    yield Row("data", ("the same" if data["same"] else "", ""), top=True)
    if not data["same"]:
        yield Row("fingerprint", [(side["fingerprint"] or "unknown")[:12] for side in (a, b)])
    if a["spans"] != b["spans"]:
        yield Row("spans", [some_spans(side["spans"]) or _ABSENT for side in (a, b)])
    for split in dict.fromkeys([*a["rows"], *b["rows"]]):
        counts = [side["rows"].get(split) for side in (a, b)]
        if not data["same"] or counts[0] != counts[1]:
            texts = [_ABSENT if count is None else f"{count:,}" for count in counts]
            yield Row(f"{split} rows", texts)
    for text in a["findings"]:
        yield Row(_FINDING, (text, _ABSENT))
    for text in b["findings"]:
        yield Row(_FINDING, (_ABSENT, text))


def _score_row(score: dict[str, Any]) -> Row:
    scale = score["scale"]
    sides = []
    for side in "ab":
        told = score.get(side)
        text = _ABSENT if told is None else figure(told["value"], scale)
        if sure := (told or {}).get("interval"):
            text += f" [{figure(sure['low'], scale)}, {figure(sure['high'], scale)}]"
        sides.append(text)
    if score.get("comparable") is False:
        return Row(score["label"], sides, "other signature", "yellow")
    if "difference" not in score:
        return Row(score["label"], sides)
    if not score["difference"]:
        return Row(score["label"], sides, "the same")
    note = f"{score['difference']:+.{digits(scale)}f}"
    if "intervals_overlap" in score:
        note += ", overlap" if score["intervals_overlap"] else ", apart"
    style = {"a": "red", "b": "green"}.get(score.get("better", ""), "")
    return Row(score["label"], sides, note, style)


def _took(facts: dict[str, Any] | None) -> str:
    if facts is None:
        return _ABSENT
    if facts["state"] != "done":
        return str(facts["state"])
    peak = f", {size(facts['peak_bytes'])}" if "peak_bytes" in facts else ""
    return duration(facts.get("seconds")) + peak


def moment(seconds: float | None) -> str:
    """A time in seconds since 1970, in UTC, to the minute."""
    if seconds is None:
        return _ABSENT
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M")
