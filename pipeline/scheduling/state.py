"""The state of a schedule: one JSON file in the pipeline's folder, replaced atomically."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from regard.components.common.run_record import INTERRUPTED, KILLED, NOT_BLESSED
from regard.core.errors import UserError
from regard.core.files import atomic_write

FILE = "state.json"
MAX_HISTORY = 500  # attempts
# Statuses of an attempt in addition to those of runs.
PUSHED, REFUSED = "pushed", "refused"
# The training reached its decision. Later data is compared with its data.
DECIDED = (PUSHED, NOT_BLESSED)
# The run was cut short. It resumes where it was.
UNFINISHED = (INTERRUPTED, KILLED)

Timestamp = Annotated[float, Field(ge=0, lt=253_402_300_800)]  # seconds since 1970, before 10000


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class TrainingFiles(_Record):
    """Files of ``data.train`` that are read together.

    Attributes:
        files: path, size in bytes and SHA-256 of each file.
        rows: their number of rows, if counted.
    """

    files: list[tuple[str, int, str]]
    rows: int | None = None


class TrainedData(_Record):
    """The data of a run.

    Attributes:
        key: digest of data and settings.
        groups: the training files.
        spans: SHA-256 of the files of each span.
        run: the run's id.
    """

    key: str
    groups: list[TrainingFiles]
    spans: dict[str, list[str]]
    run: str | None = None


class Attempt(_Record):
    """A run that the schedule started.

    Attributes:
        key: digest of data and settings.
        number: how often they were tried, from 1.
        kills: how often the run was killed before.
        started: when the attempt started.
        reason: why it started.
        data: its data, until the attempt has ended.
        earlier_runs: the ids of the runs before it, until the attempt has ended. The run of the
            attempt is another one, even if the clock has been set back meanwhile.
        pid: process id of the run.
        ended: when the end of the attempt was recorded.
        status: ``pushed``, ``refused`` (data or settings are at fault), or a status of runs.
        text: the status in a sentence.
        run: the run's id; None if it never started.
        version: the pushed version.
        seconds: duration of the run.
        exit_status: the exit status of ``regard run``, if observed.
    """

    key: str
    number: int = 1
    kills: int = 0
    started: Timestamp
    reason: str
    data: TrainedData | None = None
    earlier_runs: list[str] | None = None
    pid: int | None = None
    ended: Timestamp | None = None
    status: str = ""
    text: str = ""
    run: str | None = None
    version: str | None = None
    seconds: float | None = None
    exit_status: int | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> Attempt:
        if not (self.data if self.ended is None else self.status):
            raise ValueError("an attempt needs data before its end and a status afterwards")
        return self

    @property
    def name(self) -> str:
        """The run as messages name it."""
        return f"run {self.run}" if self.run else "the run"


class ScheduleState(_Record):
    """What a schedule knows between checks and restarts.

    Attributes:
        created: when the schedule first started.
        checked: the last check of the data.
        retry_at: when to check again before the next scheduled time.
        attempt: the last attempt.
        trained: the data of the last training that reached its decision.
        history: the attempts that have ended, the oldest first.
    """

    created: Timestamp | None = None
    checked: Timestamp | None = None
    retry_at: Timestamp | None = None
    attempt: Attempt | None = None
    trained: TrainedData | None = None
    history: list[Attempt] = Field(default_factory=list)

    @property
    def open_attempt(self) -> Attempt | None:
        """The attempt whose end was not recorded, if any."""
        return self.attempt if self.attempt is not None and self.attempt.ended is None else None


def read_state(folder: Path) -> ScheduleState:
    """Read the state in a schedule's folder; empty if there is none.

    Raises:
        UserError: the file cannot be read.
    """
    path = folder / FILE
    try:
        return ScheduleState.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return ScheduleState()
    except (OSError, ValueError) as error:
        reason = str(error)
        if isinstance(error, ValidationError):
            details = error.errors(include_url=False)[0]
            reason = ": ".join(filter(None, [".".join(map(str, details["loc"])), details["msg"]]))
        message = f"The state of the schedule cannot be read: {reason}"
        remedy = "Remove the file. The schedule starts afresh; models and runs are kept."
        raise UserError(message, str(path), remedy) from error


def write_state(folder: Path, state: ScheduleState) -> None:
    """Replace the state atomically.

    Raises:
        OSError: the file cannot be written.
    """
    state.history = state.history[-MAX_HISTORY:]
    atomic_write(folder / FILE, state.model_dump_json(indent=1, exclude_defaults=True) + "\n")
