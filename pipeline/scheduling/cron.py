"""Cron expressions in a time zone, with the rules of Vixie's cron and cronie for clock changes.

APScheduler and croniter skip a time that a clock change leaves out, and repeat a time in a repeated
hour; cron does neither: see ``CronSchedule``.
"""

import bisect
import functools
import itertools
import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from datetime import time as day_time
from typing import NamedTuple
from zoneinfo import ZoneInfo

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_PART = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?", re.ASCII)
_MAX_DAYS = 366 * 9  # 29 February is missing in 2100, between 2096 and 2104


class _Field(NamedTuple):
    name: str
    min: int
    max: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day", 1, 31),
    _Field("month", 1, 12, tuple(_MONTHS)),
    _Field("weekday", 0, 7, tuple(_DAYS)),
)


class CronSchedule:
    """The times of a cron expression.

    If the day and the weekday are restricted, either is enough. When the clock changes:

    - If minute or hour begin with ``*``, the time fires at every real minute that matches.
    - Otherwise a time that is left out fires at the moment of the change, and a time that is
      repeated fires the first time only.

    Args:
        expression: five fields, or a macro such as ``@daily``. Sunday is 0 or 7.
        zone: the time zone of the expression.

    Raises:
        ValueError: the expression is invalid.
    """

    def __init__(self, expression: str, zone: ZoneInfo):
        fields = split_cron(expression)
        if len(fields) != len(_FIELDS):
            reason = f"it has {len(fields)} fields, not {len(_FIELDS)}"
            raise ValueError(f"{expression!r} is not a cron expression: {reason}")
        try:
            values = [_parse_field(text, kind) for text, kind in zip(fields, _FIELDS, strict=True)]
        except ValueError as error:
            raise ValueError(f"{expression!r} is not a cron expression: {error}") from None
        minutes, hours, self._days, self._months, weekdays = values
        self._weekdays = {day % 7 for day in weekdays}
        self._needs_both = fields[2].startswith("*") or fields[4].startswith("*")
        self._is_wildcard = fields[0].startswith("*") or fields[1].startswith("*")
        times = itertools.product(sorted(hours), sorted(minutes))
        self._times = [day_time(hour, minute) for hour, minute in times]
        self._zone = zone
        # The next times are mostly on the same days.
        self._fire_times = functools.lru_cache(4)(lambda day: sorted(self._compute_fire_times(day)))

    def next_after(self, seconds: float) -> float | None:
        """Return the first time after a time, both in seconds since 1970; None if there is none."""
        # A time that is left out fires on a later day, if the change leaves out its whole day.
        first = datetime.fromtimestamp(seconds, self._zone).date() - timedelta(days=2)
        for offset in range(_MAX_DAYS):
            day = first + timedelta(days=offset)
            if self._matches(day):
                fire_times = self._fire_times(day)
                following = bisect.bisect_right(fire_times, seconds)
                if following < len(fire_times):
                    return fire_times[following]
        return None

    def _matches(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        is_day, is_weekday = day.day in self._days, day.isoweekday() % 7 in self._weekdays
        if self._needs_both:
            return is_day and is_weekday
        return is_day or is_weekday

    def _compute_fire_times(self, day: date) -> Iterator[float]:
        """Yield the times of a day in seconds since 1970."""
        for time in self._times:
            local = datetime.combine(day, time, self._zone)
            first, second = local.timestamp(), local.replace(fold=1).timestamp()
            if first > second:  # left out: the offsets before and after the change disagree
                if not self._is_wildcard:
                    yield self._change_between(second, first)
                continue
            yield first
            if second > first and self._is_wildcard:
                yield second

    def _change_between(self, start: float, end: float) -> float:
        """Return the first second with the offset of ``end``."""
        low, high = int(start), int(end)
        offset = self._offset(high)
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(middle) == offset:
                high = middle
            else:
                low = middle
        return float(high)

    def _offset(self, seconds: int) -> timedelta | None:
        return datetime.fromtimestamp(seconds, timezone.utc).astimezone(self._zone).utcoffset()


def split_cron(expression: str) -> list[str]:
    """Return the fields of a cron expression, with macros expanded."""
    return _MACROS.get(expression.strip().lower(), expression).split()


def _parse_field(text: str, field: _Field) -> set[int]:
    """Return the values of a field.

    Raises:
        ValueError: it is invalid.
    """
    values: set[int] = set()
    for part in text.lower().split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is not a {field.name}, a range or a step")
        star, first, last, step = match.groups()
        has_range = star or last
        if step is not None and not (has_range and 1 <= int(step) <= field.max):
            raise ValueError(f"{part!r} has an invalid step; use for example */2 or 1-5/2")
        low = field.min if star else _parse_value(first, field)
        high = field.max if star else _parse_value(last or first, field)
        if star and field.name == "weekday":
            high = 6
        if last and field.name == "weekday" and high == 0 and low > 0:
            high = 7  # fri-sun, but sun-sun is Sunday only
        if low > high:
            raise ValueError(f"the range {part!r} ends before it begins")
        values.update(range(low, high + 1, int(step or 1)))
    return values


def _parse_value(text: str, field: _Field) -> int:
    if text in field.names:
        return field.names.index(text) + (field.min if field.name == "month" else 0)
    if not text.isdecimal() or not field.min <= int(text) <= field.max:
        names = f", or {field.names[0]} to {field.names[-1]}" if field.names else ""
        raise ValueError(f"{text!r} is no {field.name}: use {field.min} to {field.max}{names}")
    return int(text)
