"""Whether it is time to look: from what was dealt with, and the times of the schedule."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from pipeline.scheduling.clock import moment
from pipeline.scheduling.settings import Settings
from pipeline.scheduling.state import State

LATE = 60.0  # seconds: a time that is met within them was not missed
_MOST = 1000  # missed times that are counted
_PASSED = "{count} passed without a look since {first}"


@dataclass(frozen=True)
class Due:
    """Whether to look now, and what there is to say of times that have passed."""

    look: bool
    passed: str = ""


def due(settings: Settings, state: State, now: float, catchup: bool | None = None) -> Due:
    """Whether it is time to look.

    Args:
        settings: with the schedule.
        state: what was dealt with.
        now: seconds since 1970.
        catchup: whether missed times are made up for; None: as the schedule says.
    """
    schedule = settings.schedule
    if state.retry_at is not None and now >= state.retry_at:
        return Due(True)
    if state.looked is None and schedule.cron is None:
        return Due(True)
    missed = _passed(settings, state, now)
    if not missed:
        return Due(False)
    if schedule.cron is None or (len(missed) == 1 and now - missed[0] <= LATE):
        return Due(True)
    number = f"{len(missed):,}{'+' if len(missed) == _MOST else ''}"
    count = "1 time" if len(missed) == 1 else f"{number} times"
    passed = _PASSED.format(count=count, first=shown(missed[0], settings.zone))
    if schedule.catchup if catchup is None else catchup:
        return Due(True, f"{passed}; this look makes up for {'it' if len(missed) == 1 else 'them'}")
    return Due(now - missed[-1] <= LATE, f"{passed}; nothing makes up for it, as catchup is off")


def following(settings: Settings, state: State, now: float) -> float | None:
    """The next time to look, in seconds since 1970; None where there is none any more."""
    found = settings.times.after(moment(_reference(state, now)))
    coming = [] if found is None else [found.timestamp()]
    coming += [] if state.retry_at is None else [state.retry_at]
    return min(coming, default=None)


def coming(settings: Settings, state: State, now: float, count: int) -> list[float]:
    """The next times of the schedule itself; an interval that is over ends now."""
    times, at = settings.times, moment(now)
    found: list[float] = []
    if settings.schedule.cron is None:
        first = None if state.looked is None else times.after(moment(_reference(state, now)))
        found.append(now if first is None else max(now, first.timestamp()))
        at = moment(found[0])
    while len(found) < count and (after := times.after(at)) is not None:
        found.append(after.timestamp())
        at = after
    return found


def is_ahead(state: State, now: float) -> bool:
    """Whether the last look lies in the future, as the clock was wrong then or is now."""
    return (state.looked or state.since or now) > now + LATE


def shown(seconds: float, zone: ZoneInfo) -> str:
    """A time as the user reads it, in the zone of the schedule."""
    return moment(seconds).astimezone(zone).strftime("%a %Y-%m-%d %H:%M %Z")


def _reference(state: State, now: float) -> float:
    return min(state.looked or state.since or now, now)


def _passed(settings: Settings, state: State, now: float) -> list[float]:
    """The times of the schedule since the last look."""
    times, at = settings.times, moment(_reference(state, now))
    found: list[float] = []
    while len(found) < _MOST and (after := times.after(at)) is not None:
        if after.timestamp() > now:
            break
        found.append(after.timestamp())
        at = after
    return found
