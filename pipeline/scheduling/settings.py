"""The configuration of a schedule, which is read again at each check."""

from pathlib import Path
from zoneinfo import ZoneInfo

from regard.core.errors import EnvironmentFault, UserError
from regard.pipeline.config import Config, load
from regard.pipeline.config.schedule import ScheduleConfig
from regard.pipeline.scheduling.triggers import cron_trigger, next_fire_time, time_zone

MISFIRE_GRACE_SECONDS = 60.0


class ScheduleSettings:
    """A pipeline's configuration and its schedule, by default every change starts a run.

    Args:
        source: the YAML file; or a configuration, which is not read again.

    Raises:
        UserError: the file is invalid.
    """

    config: Config
    schedule: ScheduleConfig
    zone: ZoneInfo

    def __init__(self, source: Path | Config):
        self._source = source
        self.path = Path(source.origin.file) if isinstance(source, Config) else source
        self.reload()

    def reload(self, name: str | None = None) -> None:
        """Read the file again. If it is invalid, the previous settings remain.

        Args:
            name: the name that the pipeline must have; None: any.

        Raises:
            UserError: as for the class, or the pipeline has another name.
        """
        config = self._source if isinstance(self._source, Config) else load(self._source)
        if name not in (None, config.name):
            message = f"the name changed from {name} to {config.name}"
            raise UserError(message, f"{self.path}: name")
        schedule = config.schedule or ScheduleConfig()
        try:
            zone = time_zone(schedule.timezone)
        except ValueError as error:  # without cron, nothing else has read the machine's zone
            remedy = "Set the environment variable TZ to a name such as Europe/Berlin."
            message = f"The schedule cannot show times: {error}."
            raise EnvironmentFault(message, "TZ", remedy) from None
        self._trigger = cron_trigger(schedule.cron, zone) if schedule.cron else None
        self.config, self.schedule, self.zone = config, schedule, zone

    def next_time(self, after: float) -> float:
        """Return the first scheduled time after a time, both in seconds since 1970."""
        if self._trigger is None:
            return after + self.schedule.interval.total_seconds()
        return next_fire_time(self._trigger, after)

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
