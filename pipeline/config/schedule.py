"""The section ``schedule``: when to look for something new, and what is reason enough for a run."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Annotated, Literal

from pydantic import Field

from components.errors import UserError
from models.settings.base import Positive, Problem, Section, Share
from pipeline.config.data import Checks, Data

Duration = Annotated[str, Field(pattern=r"^([1-9][0-9]{0,8}[smhd])+$")]
LONGEST = timedelta(days=366)  # of all durations
EVERY = "15m"
_FORM = "a number and s, m, h or d for each part, such as 90s, 15m, 1h30m or 2d"


class DriftLimits(Section):
    """Limits of drift; beyond one of them there is a run."""

    words: Share | None = Field(
        default=None,
        description="Jensen-Shannon divergence of the words; null: the limit of "
        "data.checks.drift_words.",
    )
    oov: Share | None = Field(
        default=None,
        description="Share of running words that are new beyond what is expected; null: the limit "
        "of data.checks.drift_oov.",
    )
    lengths: Share | None = Field(
        default=None,
        description="Jensen-Shannon divergence of the lengths; null: the limit of "
        "data.checks.drift_lengths.",
    )

    def by_check(self, checks: Checks) -> dict[str, float]:
        """The limit of each measure, by the name of its check; what has none is not measured."""
        limits: dict[str, float] = {}
        for name in type(self).model_fields:
            check = getattr(checks, f"drift_{name}")
            own = getattr(self, name)
            limit = own if own is not None else check.limit if check is not None else None
            if limit is not None:
                limits[f"drift_{name}"] = limit
        return limits


class Schedule(Section):
    """When `regard schedule` looks for something new, and what is reason enough for a run."""

    cron: str | None = Field(
        default=None,
        description="When to look: minute, hour, day of the month, month, day of the week; or six "
        "fields with the second in front; or @hourly, @daily, @weekly, @monthly, @yearly. null: "
        "by `every`.",
        examples=["0 3 * * *"],
    )
    timezone: str | None = Field(
        default=None,
        description="The time zone of cron, by its name; null: the machine's.",
        examples=["Europe/Berlin"],
    )
    every: Duration | None = Field(
        default=None,
        description=f"How long to wait from one look to the next: {_FORM}. null: {EVERY} where "
        "there is no cron.",
        examples=["1h"],
    )
    new_span: bool = Field(
        default=False,
        description="Run when there is a span that the last training did not have, or had in "
        "another version or with other content.",
    )
    new_rows: Positive | None = Field(
        default=None,
        description="Run when the files of data.train have so many rows that the last training did "
        "not have; null: rows do not matter.",
        examples=[10000],
    )
    drift: DriftLimits | None = Field(
        default=None,
        description="Run when train has drifted beyond these limits from the data of the model in "
        "production, or where there is none from that of the last training; {}: those of "
        "data.checks; null: drift does not matter.",
    )
    require: Literal["any", "all"] = Field(
        default="any",
        description="Whether one of new_span, new_rows and drift is enough, where several are "
        "given. Without any, every look at other data or settings than were tried leads to a run.",
    )
    catchup: bool = Field(
        default=True,
        description="Whether times that were missed, while a run went on or nothing looked, are "
        "made up for by one look; false: by none.",
    )
    attempts: Positive = Field(
        default=3,
        description="How often a run that fails is tried with the same data and settings. What is "
        "refused, because data or settings are at fault, is tried once.",
    )
    backoff: Duration = Field(
        default="10m",
        description="How long to wait after the first failure, and twice as long after each "
        f"further one: {_FORM}.",
    )

    @property
    def interval(self) -> timedelta:
        """From one look to the next, without cron."""
        from pipeline.scheduling.times import seconds_in

        return timedelta(seconds=seconds_in(self.every or EVERY))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The names of the conditions that are given."""
        return tuple(name for name in ("new_span", "new_rows", "drift") if self._is_on(name))

    def _is_on(self, name: str) -> bool:
        return getattr(self, name) not in (None, False)


def impossible_schedule(schedule: Schedule, data: Data) -> Iterator[Problem]:
    """Yields what cannot work in a schedule.

    Args:
        schedule: the section.
        data: what it looks at.
    """
    if schedule.cron is not None and schedule.every is not None:
        message = "cannot be given together with schedule.cron; remove one or the other"
        yield Problem(("schedule", "every"), message)
    yield from _durations(schedule)
    yield from _times(schedule)
    if schedule.new_span and not data.has_spans:
        message = "no path of data has a placeholder such as {SPAN}, so there are no spans"
        yield Problem(("schedule", "new_span"), message)
    if schedule.drift is None:
        return
    limits = schedule.drift.by_check(data.checks)
    for name, limit in limits.items():
        check = getattr(data.checks, name)
        if check is not None and check.action == "fail" and limit >= check.limit:
            message = f"every run for a drift above {limit:g} would be refused: data.checks.{name} "
            message += f"fails above {check.limit:g}; set its action to warn, or a smaller limit "
            message += "here"
            yield Problem(("schedule", "drift", name.removeprefix("drift_")), message)
    if not limits:
        message = "data.checks measures no drift; give a limit, such as {words: 0.03}"
        yield Problem(("schedule", "drift"), message)


def _durations(schedule: Schedule) -> Iterator[Problem]:
    from pipeline.scheduling.times import seconds_in

    for name in ("every", "backoff"):
        given = getattr(schedule, name)
        if given is not None and seconds_in(given) > LONGEST.total_seconds():
            message = f"{given} is too long; {LONGEST.days}d is the most"
            yield Problem(("schedule", name), message)


def _times(schedule: Schedule) -> Iterator[Problem]:
    """What is wrong with zone and expression."""
    if schedule.timezone is not None and schedule.cron is None:
        yield Problem(("schedule", "timezone"), "is that of schedule.cron, which is not given")
        return
    if schedule.cron is None:
        return
    # Here, because hardly a configuration has a schedule.
    from zoneinfo import available_timezones

    from pipeline.scheduling.times import CronTimes, zone_of

    try:
        zone = zone_of(schedule.timezone)
    except ValueError as error:
        given = str(schedule.timezone)
        near = difflib.get_close_matches(given, available_timezones(), n=1)
        hint = f"; did you mean {near[0]}?" if near else ", such as Europe/Berlin or UTC"
        yield Problem(("schedule", "timezone"), f"{error}{hint}")
        return
    except UserError as error:
        message = f"{error.message} ({error.where}); give one, such as Europe/Berlin or UTC"
        yield Problem(("schedule", "timezone"), message)
        return
    try:
        never = CronTimes(schedule.cron, zone).after(datetime.now(timezone.utc)) is None
    except UserError as error:
        message = f"{error.message}; write minute, hour, day of the month, month and day of the "
        yield Problem(("schedule", "cron"), f"{message}week, such as '0 3 * * 1-5', or @daily")
        return
    if never:
        message = f"{schedule.cron!r} never comes: there is no such day"
        yield Problem(("schedule", "cron"), message)
