"""Times of a schedule: cron expressions, time zones and durations."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from regard.pipeline.scheduling.cron import CronSchedule

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def cron_trigger(expression: str, zone: ZoneInfo) -> CronSchedule:
    """Return the schedule of a cron expression that has a next time.

    Args:
        expression: a cron expression, see ``CronSchedule``.
        zone: the time zone of the expression.

    Raises:
        ValueError: the expression is invalid, or never fires.
    """
    trigger = CronSchedule(expression, zone)
    if trigger.next_after(time.time()) is None:
        raise ValueError(f"{expression!r} never fires: there is no such date")
    return trigger


def next_fire_time(trigger: CronSchedule, after: float) -> float:
    """Return the first fire time after a time, both in seconds since 1970.

    Raises:
        ValueError: there is none within the calendar.
    """
    following = trigger.next_after(after)
    if following is None:
        raise ValueError("the schedule has no further time")
    return following


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
