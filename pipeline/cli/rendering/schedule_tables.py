"""The status of a schedule in a terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from regard.core.formatting import format_count, format_wait
from regard.pipeline.cli import terminal
from regard.pipeline.config.schedule import DEFAULT_INTERVAL
from regard.pipeline.scheduling.attempt import format_attempt
from regard.pipeline.scheduling.triggers import format_time

if TYPE_CHECKING:
    from rich.console import Console

    from regard.pipeline.scheduling.plan import SchedulePlan
    from regard.pipeline.scheduling.settings import ScheduleSettings


def describe_schedule(settings: ScheduleSettings) -> str:
    """Describe the times and conditions of a schedule in a sentence."""
    schedule = settings.schedule
    if schedule.cron is not None:
        times = f"checks at {schedule.cron!r} ({settings.zone})"
    else:
        times = f"checks every {schedule.every or DEFAULT_INTERVAL}"
    names = {
        "new_span": "a new span",
        "new_rows": format_count(schedule.new_rows or 0, "new row"),
        "drift": "drift",
    }
    conjunction = " or " if schedule.require == "any" else " and "
    conditions = conjunction.join(names[name] for name in schedule.conditions)
    return f"{times}; runs for {conditions or 'any change of data or settings'}"


def print_plan(plan: SchedulePlan, settings: ScheduleSettings, console: Console) -> None:
    """Print the output of ``--dry-run``."""

    def line(label: str, text: str, style: str = "") -> None:
        terminal.print_text(console, (f"  {label:<10} ", "bold"), (text, style))

    zone, now = settings.zone, time.time()
    terminal.print_text(console, (plan.name, "bold"), f" {describe_schedule(settings)}")
    if plan.process:
        line("process", str(plan.process))
    line("last check", format_time(plan.checked, zone) if plan.checked else "never")
    for attempt in plan.attempts:
        started = format_time(attempt.started, zone)
        line("attempt", f"{started}, {attempt.reason}; {format_attempt(attempt)}")
    if plan.retry_at:
        line("retry", _format_future(plan.retry_at, now, zone))
    for at in plan.next:
        line("next", _format_future(at, now, zone))
    for note in plan.notes:
        line("note", note, "yellow")
    for result in plan.conditions:
        line("yes" if result.is_met else "no", str(result), "green" if result.is_met else "")
    verdict = "would run now" if plan.should_run else "would not run now"
    reason = "" if plan.conditions else f": {plan.reason}"
    line("verdict", verdict + reason, "bold green" if plan.should_run else "bold yellow")


def _format_future(at: float, now: float, zone: ZoneInfo) -> str:
    return f"{format_time(at, zone)}, {f'in {format_wait(at - now)}' if at > now else 'now'}"
