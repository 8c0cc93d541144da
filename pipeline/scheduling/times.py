"""When a schedule looks: the times of a cron expression in a time zone, or an interval.

APScheduler's triggers know the calendar. What they read differently from cron is translated here:
its weeks begin on Monday; it wants a day of the month and a day of the week to hold both, where
cron takes either; and at the end of summer time it meets every hour's times twice.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pipeline.cron import six_fields

if TYPE_CHECKING:
    from pipeline.config.schedule import Schedule

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MOMENT = timedelta(microseconds=1)


class Times(Protocol):
    """When to look."""

    def after(self, moment: datetime) -> datetime | None:
        """The first time after a moment, in UTC; None where there is none any more."""


class CronTimes:
    """The times of a cron expression.

    Where the clock is set forward, what falls into the lost hour is due at the end of it. Where it
    is set back, a time of day is met once, in the first of the two hours; an expression for every
    hour (``*`` in its field) goes on through both.

    Args:
        expression: as ``six_fields`` takes it.
        zone: the time zone it is meant in.
    """

    def __init__(self, expression: str, zone: ZoneInfo):
        second, minute, hour, day, month, weekday = six_fields(expression, "schedule.cron").split()
        self._every_hour = hour.startswith(("*", "?"))
        fields = {"second": second, "minute": minute, "hour": hour, "month": month}
        fields = {name: text.replace("?", "*") for name, text in fields.items()}
        days = {"day": day.replace("?", "*"), "day_of_week": _weekdays(weekday)}
        either = not (day.startswith(("*", "?")) or weekday.startswith(("*", "?")))
        self._triggers = [
            _trigger(zone, **fields, **one)
            for one in ([{key: text} for key, text in days.items()] if either else [days])
        ]

    def after(self, moment: datetime) -> datetime | None:
        """The first time after a moment, in UTC; None where there is none any more."""
        found = [self._after(trigger, moment) for trigger in self._triggers]
        return min((one for one in found if one is not None), default=None)

    def _after(self, trigger: Any, moment: datetime) -> datetime | None:
        while True:
            # Its own arithmetic is on the clock's face, and would lose which of two hours is meant.
            now = moment.astimezone(timezone.utc) + _MOMENT
            found = trigger.get_next_fire_time(None, now)
            if found is None:
                return None
            moment = found.astimezone(timezone.utc)
            if self._every_hour or not found.fold:
                return moment


class EveryTimes:
    """An interval from one look to the next."""

    def __init__(self, interval: timedelta):
        self._interval = interval

    def after(self, moment: datetime) -> datetime:
        """An interval later."""
        return moment.astimezone(timezone.utc) + self._interval


def times_of(schedule: Schedule) -> Times:
    """When a schedule looks.

    Raises:
        UserError: its expression is none.
    """
    if schedule.cron is not None:
        return CronTimes(schedule.cron, zone_of(schedule.timezone))
    return EveryTimes(schedule.interval)


def zone_of(name: str | None) -> ZoneInfo:
    """The time zone of a name; without one, the machine's.

    Raises:
        ValueError: there is none of that name.
    """
    if name is None:
        from tzlocal import get_localzone

        return get_localzone()
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise ValueError(f"{name!r} is no time zone") from None


def seconds_in(text: str) -> int:
    """The seconds of a duration such as ``90s``, ``15m``, ``1h30m`` or ``2d``."""
    return sum(int(part[:-1]) * _UNITS[part[-1]] for part in re.findall(r"\d+[smhd]", text))


def _trigger(zone: ZoneInfo, **fields: str) -> Any:
    from apscheduler.triggers.cron import CronTrigger

    return CronTrigger(timezone=zone, **fields)


def _weekdays(field: str) -> str:
    """A field of days, of which 0 is Sunday, by their names."""
    if field in ("*", "?"):
        return "*"
    named: dict[str, None] = {}
    for item in field.split(","):
        body, _, step = item.partition("/")
        first, _, last = body.partition("-")
        if body in ("*", "?"):
            first, last = "0", "6"
        elif step and not last:
            last = "6"
        days = range(int(first), int(last or first) + 1, int(step or 1))
        named.update(dict.fromkeys(_DAYS[day] for day in days))
    return ",".join(named)
