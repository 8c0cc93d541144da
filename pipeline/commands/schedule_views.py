"""How a schedule is printed: while it is kept, what it would do, and what it did."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from components.words import counted
from pipeline import runs
from pipeline.commands import terminal
from pipeline.live import duration
from pipeline.scheduling import state
from pipeline.scheduling.calendar import shown

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.config.schedule import Schedule
    from pipeline.scheduling.settings import Settings

_STYLES = {
    state.PUSHED: "green",
    state.REFUSED: "red",
    runs.FAILED: "red",
    runs.KILLED: "red",
    runs.NOT_BLESSED: "yellow",
}
_HEADINGS = ("started", "run", "status", "version", "time", "what came of it", "why it ran")
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


class LineView:
    """Lines with the time in front; in a terminal also what goes on, redrawn below them."""

    def __init__(self, console: Console, settings: Settings):
        self._console = console
        self._settings = settings  # its zone may change with the file
        self.live = console.is_terminal
        self._status: Any = None

    def say(self, text: str, style: str = "") -> None:
        """Prints a line."""
        from rich.text import Text

        when = f"{shown(time.time(), self._settings.zone)}  "
        self._console.print(Text.assemble((when, "dim"), (text, style)), soft_wrap=True)

    def show(self, text: str) -> None:
        """Draws what goes on; nowhere but in a terminal."""
        from rich.markup import escape

        if not self.live:
            return
        if not text:
            if self._status is not None:
                self._status.stop()
                self._status = None
            return
        if self._status is None:
            self._status = self._console.status(escape(text))
            self._status.start()
        self._status.update(escape(text))


def described(schedule: Schedule, zone: ZoneInfo) -> str:
    """When it looks and what is reason enough, in a sentence."""
    if schedule.cron is not None:
        when = f"looks at {schedule.cron!r}, {zone}"
    else:
        when = f"looks every {in_words(schedule.interval.total_seconds())}"
    reasons = {
        "new_span": "a new span",
        "new_rows": counted(schedule.new_rows or 0, "new row"),
        "drift": "drift",
    }
    given = [reasons[name] for name in schedule.conditions]
    if not given:
        return f"{when}; runs when data or settings are new"
    join = " or " if schedule.require == "any" else " and "
    return f"{when}; runs for {join.join(given)}"


def in_words(seconds: float) -> str:
    """A time to wait, in the unit that suits it: ``45 seconds``, ``17 hours``, ``3 days``."""
    size, unit = next((one for one in _UNITS if seconds >= 2 * one[0]), _UNITS[-1])
    return counted(round(seconds / size), unit)


def print_plan(plan: Mapping[str, Any], zone: ZoneInfo, console: Console) -> None:
    """What ``--dry-run`` tells."""
    from rich.text import Text

    def line(name: str, text: str, style: str = "") -> None:
        console.print(Text.assemble((f"  {name:<9} ", "bold"), (text, style)), soft_wrap=True)

    head = Text.assemble((plan["name"], "bold"), f" {plan['sentence']}")
    console.print(head, soft_wrap=True)
    if plan["kept_by"]:
        line("kept by", f"process {plan['kept_by']}")
    line("last look", shown(plan["looked"], zone) if plan["looked"] else "never")
    if plan["last"]:
        line("last run", _ended(plan["last"]))
    if plan["passed"]:
        line("missed", plan["passed"])
    now = plan["now"]
    if plan["retry_at"]:
        line("again at", _when(plan["retry_at"], now, zone))
    for index, at in enumerate(plan["next"]):
        line("next" if index == 0 else "", _when(at, now, zone))
    for note in plan["notes"]:
        line("note", note, "yellow")
    for finding in plan["findings"]:
        holds = "yes" if finding["holds"] else "no"
        text = f"{finding['condition']}: {finding['text']}"
        line(holds, text, "green" if finding["holds"] else "")
    verdict = "a look now would run it" if plan["run"] else "a look now would not run it"
    line("verdict", verdict, "bold green" if plan["run"] else "bold yellow")
    if not plan["findings"]:
        line("", plan["why"])


def _when(at: float, now: float, zone: ZoneInfo) -> str:
    return f"{shown(at, zone)}, {f'in {in_words(at - now)}' if at > now else 'now'}"


def _ended(tried: Mapping[str, Any]) -> str:
    from pipeline.scheduling.scheduler import said

    return said(tried) if "ended" in tried else "nobody has seen it end yet"


def print_history(records: Sequence[Mapping[str, Any]], zone: ZoneInfo, console: Console) -> None:
    """One line an attempt, the newest first."""

    def style(row: Sequence[str]) -> tuple[int, str] | None:
        return (2, _STYLES[row[2]]) if row[2] in _STYLES else None

    rows = [
        (
            shown(record["started"], zone),
            record.get("run") or "-",
            record["status"],
            str(record.get("version") or ""),
            duration(record.get("seconds")),
            record["text"],
            record["reason"],
        )
        for record in records
    ]
    terminal.print_table(_HEADINGS, rows, console, below=2, style=style)


def print_unit(path: str, commands: Sequence[str], console: Console) -> None:
    """Where the unit lies, and what to type."""
    console.print(f"{path} is written. To start it, and to see what it does:", soft_wrap=True)
    for command in commands:
        console.print(f"  {command}", soft_wrap=True)
