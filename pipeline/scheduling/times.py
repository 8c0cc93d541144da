"""When a schedule looks: the times of a cron expression in a time zone, or an interval.

APScheduler's triggers know the calendar. What they read differently from cron is translated here:
its weeks begin on Monday; and it wants a day of the month and a day of the week to hold both, where
cron takes either. It reckons with the clock on the wall alone, as if that were UTC: in a zone it
would leave out a day whose midnight is lost, and meet a time of day twice where an hour is.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from components.errors import UserError
from pipeline.cron import six_fields

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MOMENT, _SECOND = timedelta(microseconds=1), timedelta(seconds=1)


class Times(Protocol):
    """When to look."""

    def after(self, moment: datetime) -> datetime | None:
        """The first time after a moment, in UTC; None where there is none any more."""


class CronTimes:
    """The times of a cron expression.

    Where the clock is set forward, what falls into the lost time is due at the end of it, once.
    Where it is set back, a time of day is met once, in the first of the two hours; an expression
    for every hour (``*`` in its field) goes on through both.

    Args:
        expression: as ``six_fields`` takes it.
        zone: the time zone it is meant in.
    """

    def __init__(self, expression: str, zone: ZoneInfo):
        second, minute, hour, day, month, weekday = six_fields(expression, "schedule.cron").split()
        self._zone = zone
        self._every_hour = hour.startswith(("*", "?"))
        fields = {"second": second, "minute": minute, "hour": hour, "month": month}
        fields = {name: text.replace("?", "*") for name, text in fields.items()}
        days = {"day": day.replace("?", "*"), "day_of_week": _weekdays(weekday)}
        either = not (day.startswith(("*", "?")) or weekday.startswith(("*", "?")))
        self._triggers = [
            _trigger(**fields, **one)
            for one in ([{key: text} for key, text in days.items()] if either else [days])
        ]

    def after(self, moment: datetime) -> datetime | None:
        """The first time after a moment, in UTC; None where there is none any more."""
        found = [self._after(trigger, moment) for trigger in self._triggers]
        return min((one for one in found if one is not None), default=None)

    def _after(self, trigger: Any, moment: datetime) -> datetime | None:
        moment = moment.astimezone(timezone.utc)
        wall = _wall(moment, self._zone)
        for face in _faces(trigger, wall):
            coming = [at for at in self._moments(face) if at > moment]
            if coming:
                return self._repeated(trigger, moment, wall, face, coming[0]) or coming[0]
        return None

    def _repeated(
        self, trigger: Any, moment: datetime, wall: datetime, face: datetime, found: datetime
    ) -> datetime | None:
        """A time before ``found`` that is shown for the second time, where every hour counts."""
        back = (found - moment) - (face - wall)  # by so much the clock is set back meanwhile
        if not self._every_hour or back <= timedelta(0):
            return None
        for again in itertools.takewhile(lambda one: one < face, _faces(trigger, wall - back)):
            coming = [at for at in self._moments(again) if moment < at < found]
            if coming:
                return coming[0]
        return None

    def _moments(self, wall: datetime) -> list[datetime]:
        """When the clock shows a time; where it is lost, the end of what is lost."""
        first, second = (
            wall.replace(tzinfo=self._zone, fold=fold).astimezone(timezone.utc) for fold in (0, 1)
        )
        if first > second:  # the clock never shows it
            return [_change(second, first, self._zone)]
        return [first, second] if self._every_hour and first < second else [first]


class EveryTimes:
    """An interval from one look to the next."""

    def __init__(self, interval: timedelta):
        self._interval = interval

    def after(self, moment: datetime) -> datetime:
        """An interval later."""
        return moment.astimezone(timezone.utc) + self._interval


def zone_of(name: str | None) -> ZoneInfo:
    """The time zone of a name; without one, the machine's.

    Raises:
        ValueError: there is none of that name.
        UserError: the machine's has none.
    """
    if name is None:
        return _machine_zone()
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise ValueError(f"{name!r} is no time zone") from None


def _machine_zone() -> ZoneInfo:
    from tzlocal import get_localzone

    try:
        return get_localzone()
    except (LookupError, OSError, ValueError):  # TZ=CET-1CEST, for one
        raise UserError(
            "the machine's time zone has no name that is known",
            where=f"TZ={os.environ['TZ']}" if "TZ" in os.environ else "/etc/localtime",
            remedy="Give schedule.timezone beside schedule.cron, or set TZ to a name such as "
            "Europe/Berlin.",
        ) from None


def seconds_in(text: str) -> int:
    """The seconds of a duration such as ``90s``, ``15m``, ``1h30m`` or ``2d``."""
    return sum(int(part[:-1]) * _UNITS[part[-1]] for part in re.findall(r"\d+[smhd]", text))


def _trigger(**fields: str) -> Any:
    from apscheduler.triggers.cron import CronTrigger

    return CronTrigger(timezone=timezone.utc, **fields)


def _faces(trigger: Any, wall: datetime) -> Iterator[datetime]:
    """The times after another one, all as the clock on the wall shows them."""
    found: datetime | None = wall.replace(tzinfo=timezone.utc)
    while found and (found := trigger.get_next_fire_time(None, found + _MOMENT)) is not None:
        yield found.replace(tzinfo=None)


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)


def _change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The second between two moments at which the clock is set."""
    offset = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // _SECOND // 2 * _SECOND
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after


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
