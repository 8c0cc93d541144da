"""Times of a schedule. APScheduler evaluates cron expressions, time zones and DST."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from apscheduler.triggers.base import BaseTrigger

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def cron_trigger(expression: str, zone: ZoneInfo) -> BaseTrigger:
    """Return the trigger of a cron expression.

    Args:
        expression: five fields, or a macro such as ``@daily``. Sunday is 0 or 7. If both the day
            and the weekday are restricted, either is enough, as in cron.
        zone: the time zone of the expression.

    Raises:
        ValueError: the expression is invalid, or never fires.
    """
    from apscheduler.triggers.combining import OrTrigger
    from apscheduler.triggers.cron import CronTrigger

    fields = split_cron(expression)
    try:
        minute, hour, day, month, weekday = fields
        if "/" in weekday:
            raise ValueError("steps of weekdays are not supported; list the days")
        # APScheduler numbers weekdays from Monday, so they are passed by name.
        weekday = re.sub(r"\b[0-7]\b", lambda match: _DAYS[int(match[0])], weekday)
        days = [(day, weekday)]
        if "*" not in (day[0], weekday):  # APScheduler would require both
            days = [(day, "*"), ("*", weekday)]
        triggers = [
            CronTrigger.from_crontab(f"{minute} {hour} {day} {month} {weekday}", zone)
            for day, weekday in days
        ]
    except ValueError as error:
        reason = str(error) if len(fields) == 5 else f"it has {len(fields)} fields, not 5"
        raise ValueError(f"{expression!r} is not a cron expression: {reason}") from None
    trigger = triggers[0] if len(triggers) == 1 else OrTrigger(triggers)
    if trigger.get_next_fire_time(None, datetime.now(zone)) is None:
        raise ValueError(f"{expression!r} never fires: there is no such date")
    return trigger


def next_fire_time(trigger: BaseTrigger, after: float, zone: ZoneInfo) -> float:
    """Return the first fire time after a time, both in seconds since 1970."""
    # Whole seconds, because APScheduler loses the fold of a repeated hour when it rounds.
    start = datetime.fromtimestamp(math.floor(after) + 1, zone)
    return trigger.get_next_fire_time(None, start).timestamp()


def time_zone(name: str | None) -> ZoneInfo:
    """Return a time zone by its name; None: the machine's.

    Raises:
        ValueError: the name is unknown, or the machine's zone has no name.
    """
    from tzlocal import get_localzone

    try:
        return get_localzone() if name is None else ZoneInfo(name)
    except (LookupError, OSError, ValueError):
        if name is None:
            raise ValueError("the machine's time zone has no name") from None
        raise ValueError(f"{name!r} is not a time zone") from None


def parse_duration(text: str) -> timedelta:
    """Parse a duration such as ``90s``, ``15m``, ``1h30m`` or ``2d``."""
    parts = re.findall(r"(\d+)([smhd])", text)
    return sum((timedelta(**{_UNITS[unit]: int(n)}) for n, unit in parts), timedelta())


def format_time(seconds: float, zone: ZoneInfo) -> str:
    """Format a time in seconds since 1970 in a time zone."""
    return datetime.fromtimestamp(seconds, zone).strftime("%a %Y-%m-%d %H:%M %Z")


def split_cron(expression: str) -> list[str]:
    """Return the fields of a cron expression, with macros expanded."""
    return _MACROS.get(expression.strip().lower(), expression).split()
