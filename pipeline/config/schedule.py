"""The section ``schedule``: when to check for new data, and which conditions start a run."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from regard.components.settings.data import DataConfig
from regard.components.settings.data_checks import DataChecksConfig
from regard.core.bounds import Positive
from regard.core.suggestions import did_you_mean
from regard.models.settings.base import Problem, Section
from regard.pipeline.scheduling.triggers import cron_trigger, parse_duration, time_zone

Duration = Annotated[str, Field(pattern=r"^([1-9][0-9]{0,4}[smhd]){1,4}$")]
DEFAULT_INTERVAL = "15m"
_FORMAT = "numbers with the unit s, m, h or d, such as 90s, 15m, 1h30m or 2d"
_CONDITIONS = ("new_span", "new_rows", "drift")


class ScheduleConfig(Section):
    """When `regard schedule` checks for new data, and which conditions start a run.

    Attributes:
        cron: When to check: minute, hour, day of the month, month and weekday; or @hourly, @daily,
            @weekly, @monthly, @yearly. null: use `every`.
        timezone: Time zone of cron; null: the machine's.
        new_span: Run if there is a span that the last training did not have, or had in another
            version or with other content.
        new_rows: Run if data.train has at least this number of rows that the last training did not
            have; null: ignore rows.
        drift: Run if the training split has drifted beyond the limits of data.checks from the data
            of the model in production, or if there is none.
        require: Whether any or all of new_span, new_rows and drift must hold, where set. If none is
            set, every change of data or settings starts a run.
        catchup: Whether to check once after times of cron were missed.
        attempts: Maximum number of attempts with the same data and settings if runs fail. A run
            that is refused because of its data or settings is not repeated.
        keep: Number of newest runs to keep after each run. Older ones are removed with their
            outputs, as by `regard clean`, unless they published a version that still exists. null:
            keep all.
        keep_versions: Number of newest versions in the registry to keep after each run; `regard
            registry prune` says which others stay. null: keep all.
    """

    cron: Annotated[str | None, Field(examples=["0 3 * * *"])] = None
    timezone: Annotated[str | None, Field(examples=["Europe/Berlin"])] = None
    every: Duration | None = Field(
        default=None,
        description=f"Interval between checks: {_FORMAT}. null: {DEFAULT_INTERVAL}, unless cron "
        "is set.",
        examples=["1h"],
    )
    new_span: bool = False
    new_rows: Annotated[Positive | None, Field(examples=[10000])] = None
    drift: bool = False
    require: Literal["any", "all"] = "any"
    catchup: bool = True
    attempts: Positive = 3
    backoff: Duration = Field(
        default="10m",
        description=f"Wait after the first failure, doubled after each further one: {_FORMAT}.",
    )
    keep: Annotated[Positive | None, Field(examples=[10])] = None
    keep_versions: Annotated[Positive | None, Field(examples=[5])] = None

    def own_problems(self) -> Iterator[Problem]:
        """Yield times that are ambiguous, invalid or without effect."""
        if self.cron is not None and self.every is not None:
            yield Problem(("every",), "cannot be combined with schedule.cron; remove one")
        if self.cron is not None:
            yield from _cron_problems(self.cron, self.timezone)
        elif self.timezone is not None:
            yield Problem(("timezone",), "has no effect without schedule.cron")

    @property
    def interval(self) -> timedelta:
        """Time between checks without cron."""
        return parse_duration(self.every or DEFAULT_INTERVAL)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The names of the conditions that are set."""
        return tuple(name for name in _CONDITIONS if getattr(self, name) not in (None, False))


def _cron_problems(cron: str, timezone: str | None) -> Iterator[Problem]:
    # Imported here, because few configurations have a schedule.
    from zoneinfo import available_timezones

    try:
        zone = time_zone(timezone)
    except ValueError as error:
        hint = did_you_mean(timezone, available_timezones()) or "Use a name such as Europe/Berlin."
        yield Problem(("timezone",), f"{error}. {hint}".rstrip())
        return
    try:
        cron_trigger(cron, zone)
    except ValueError as error:
        yield Problem(("cron",), f"{error}; use for example '0 3 * * 1-5', or @daily")


def validate_schedule(schedule: ScheduleConfig, data: DataConfig) -> Iterator[Problem]:
    """Yield what cannot work in a schedule with the data that it checks.

    Args:
        schedule: The section.
        data: The data that it checks.
    """
    if schedule.new_span and not data.has_spans:
        yield Problem(("schedule", "new_span"), "needs a path of data with a {SPAN}")
    if schedule.drift:
        yield from _check_drift(data.checks)


def _check_drift(checks: DataChecksConfig) -> Iterator[Problem]:
    limits = checks.drift_checks
    if not limits:
        yield Problem(("schedule", "drift"), "needs a limit, such as data.checks.drift_words")
    for name, check in limits.items():
        if check.action == "fail":
            message = f"has no effect while data.checks.{name} fails; set its action to warn"
            yield Problem(("schedule", "drift"), message)
