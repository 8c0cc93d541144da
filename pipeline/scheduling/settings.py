"""The configuration of a schedule: the YAML file and the options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from regard.components.common.errors import UserError
from regard.models.settings.base import Problem
from regard.pipeline.config import Config, load
from regard.pipeline.config.errors import problems
from regard.pipeline.config.schedule import ScheduleConfig, validate_schedule
from regard.pipeline.scheduling.triggers import cron_trigger, next_fire_time, time_zone

MISFIRE_GRACE_SECONDS = 60.0
_OPTIONS = {"new_span": "--new-span", "new_rows": "--new-rows", "timezone": "--time-zone"}
_NO_SCHEDULE_HELP = (
    "Add a section `schedule` to the file (see `regard config reference`), or give --cron, "
    "--every, --new-span, --new-rows or --drift."
)


class ScheduleSettings:
    """A pipeline's configuration and its schedule.

    Args:
        path: the YAML file.
        overrides: keys of ``schedule`` from the command line, which take precedence.

    Raises:
        UserError: the file or an override is invalid, or there is no schedule.
    """

    config: Config
    schedule: ScheduleConfig
    zone: ZoneInfo

    def __init__(self, path: Path, overrides: Mapping[str, object]):
        self.path = path
        self._overrides = dict(overrides)
        self.reload()

    def reload(self, name: str | None = None) -> None:
        """Read the file again. If it is invalid, the previous settings remain.

        Args:
            name: the name that the pipeline must have; None: any.

        Raises:
            UserError: as for the class, or the pipeline has another name.
        """
        config = load(self.path)
        if name not in (None, config.name):
            message = f"the name changed from {name} to {config.name}"
            raise UserError(message, f"{self.path}: name")
        schedule = _merge(config, self._overrides)
        if schedule is None:
            where = f"{self.path}: schedule"
            raise UserError("The pipeline has no schedule.", where, _NO_SCHEDULE_HELP)
        zone = time_zone(schedule.timezone)
        self._trigger = cron_trigger(schedule.cron, zone) if schedule.cron else None
        self.config, self.schedule, self.zone = config, schedule, zone

    def next_time(self, after: float) -> float:
        """Return the first scheduled time after a time, both in seconds since 1970."""
        if self._trigger is None:
            return after + self.schedule.interval.total_seconds()
        return next_fire_time(self._trigger, after, self.zone)

    def next_check(self, checked: float | None, created: float | None, now: float) -> float:
        """Return when the data is due to be checked; a time that has passed was missed.

        Args:
            checked: the last check; None: there was none.
            created: when the schedule first started; None: now.
            now: the current time. All times are in seconds since 1970.
        """
        if checked is None and self._trigger is None:
            return now
        after = checked or created or now
        if self._trigger is not None and not self.schedule.catchup:
            after = max(after, now - MISFIRE_GRACE_SECONDS)
        return self.next_time(after)


def _merge(config: Config, overrides: Mapping[str, object]) -> ScheduleConfig | None:
    """Return the section of the file with the overrides; None if there is neither."""
    if not overrides:
        return config.schedule
    values = config.schedule.model_dump(exclude_unset=True) if config.schedule else {}
    if "cron" in overrides:
        values.pop("every", None)
    if "every" in overrides:
        values = {k: v for k, v in values.items() if k not in ("cron", "timezone")}
    try:
        schedule = ScheduleConfig.model_validate({**values, **overrides})
    except ValidationError as error:
        raise _option_error(problems(error, ScheduleConfig)[0]) from None
    for problem in validate_schedule(schedule, config.data):
        raise _option_error(Problem(problem.path[1:], problem.message))
    return schedule


def _option_error(problem: Problem) -> UserError:
    name = str(problem.path[0]) if problem.path else "schedule"
    return UserError(problem.message, where=_OPTIONS.get(name, f"--{name}"))
