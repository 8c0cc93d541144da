"""The YAML file of a schedule, which may change meanwhile, and what the command line adds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from components.errors import UserError
from models.settings.base import Problem
from pipeline.config import Config, load
from pipeline.config.errors import problems
from pipeline.config.schedule import Schedule, impossible_schedule
from pipeline.scheduling.times import CronTimes, EveryTimes, Times, zone_of

_OPTIONS = {"new_span": "--new-span", "new_rows": "--new-rows", "timezone": "--time-zone"}
_NOTHING = (
    "Add a section `schedule` to the file (`regard config reference` has it), or give --cron, "
    "--every, --new-span, --new-rows or --drift."
)


class Settings:
    """What the file says, and said when it could be read last.

    Args:
        path: the YAML file.
        given: keys of ``schedule`` from the command line, which go before the file's.
    """

    def __init__(self, path: Path, given: Mapping[str, Any]):
        self.path = path
        self._given = dict(given)
        self._state: tuple[int, ...] | None = None
        self.config: Config
        self.schedule: Schedule
        self.zone: ZoneInfo
        self.times: Times

    def read(self) -> Settings:
        """Reads the file anew; where it is wrong, what it said before stays.

        Raises:
            UserError: the file or what was given beside it is wrong, or nothing says when to run.
        """
        self._state = self._status()
        config = load(self.path)
        schedule = _joined(config, self._given)
        if schedule is None:
            raise UserError(
                "nothing says when to run", where=f"{self.path}: schedule", remedy=_NOTHING
            )
        self.config, self.schedule = config, schedule
        self.zone, self.times = zone_of(schedule.timezone), _times_of(schedule)
        return self

    def changed(self) -> bool:
        """Whether the file is not the one that was read last."""
        return self._status() != self._state

    def _status(self) -> tuple[int, ...] | None:
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _joined(config: Config, given: Mapping[str, Any]) -> Schedule | None:
    """The section of the file with what was given; None where there is neither."""
    if not given:
        return config.schedule
    own = config.schedule.model_dump(exclude_unset=True) if config.schedule else {}
    for one, other in (("cron", "every"), ("every", "cron")):
        if one in given:
            own.pop(other, None)
    if "every" in given:
        own.pop("timezone", None)
    value = {**own, **given}
    if "drift" in given:  # whether; the limits are the file's
        value["drift"] = (own.get("drift") or {}) if given["drift"] else None
    try:
        schedule = Schedule.model_validate(value)
    except ValidationError as error:
        raise _refused(problems(error, Schedule, value)[0], ()) from None
    for problem in impossible_schedule(schedule, config.data):
        raise _refused(problem, ("schedule",))
    return schedule


def _refused(problem: Problem, above: tuple[str, ...]) -> UserError:
    path = problem.path[len(above) :]
    option = _OPTIONS.get(str(path[0]), f"--{path[0]}") if path else None
    return UserError(problem.message, where=option)


def _times_of(schedule: Schedule) -> Times:
    """When a schedule looks.

    Raises:
        UserError: its expression is none.
    """
    if schedule.cron is not None:
        return CronTimes(schedule.cron, zone_of(schedule.timezone))
    return EveryTimes(schedule.interval)
