"""What a schedule remembers: one small file in the pipeline's folder, whole at every moment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from components.errors import UserError
from components.files import atomic_write
from pipeline import runs

FILE = "state.json"
KEPT = 500  # attempts in the history
_NEVER = 253_402_300_800  # the year 10000, in seconds since 1970

# How an attempt may end, beside the states of runs.
PUSHED, REFUSED = "pushed", "refused"
# A training that came to its decision; what is tried next is held against it.
DECIDED = (PUSHED, runs.NOT_BLESSED)
# It did not end by itself, and goes on where it was.
UNFINISHED = (runs.INTERRUPTED, runs.KILLED)


# Of what kind the values are, beside which there may be others.
_Kind = type | tuple[type, ...]
_NUMBER = (int, float)
_TRIED: Mapping[str, _Kind] = {
    "key": str,
    "number": int,
    "kills": int,
    "started": _NUMBER,
    "reason": str,
}
_ENDED: Mapping[str, _Kind] = {"ended": _NUMBER, "status": str, "text": str}


@dataclass
class State:
    """What is known from one look to the next, and from one start to the next.

    Times are in seconds since 1970.

    Attributes:
        since: when the schedule was started first.
        looked: up to when every time of the schedule was dealt with.
        retry_at: when to look without waiting for the next time of the schedule.
        attempt: what was tried last: the ``key`` of its data and settings, its ``number`` from 1,
            ``kills`` (how often it was killed before), ``started``, ``reason``, the ``look`` that
            later ones are held against once it is trained, and the ``pid`` of its process. After
            its end ``ended`` and what ``attempt.Ending`` says instead of ``look``.
        trained: the ``look`` of the last training that came to its decision, and its ``run``.
        history: the attempts that have ended, the oldest first.
    """

    since: float | None = None
    looked: float | None = None
    retry_at: float | None = None
    attempt: dict[str, Any] | None = None
    trained: dict[str, Any] | None = None
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def open(self) -> dict[str, Any] | None:
        """The attempt that nobody has seen to end, if there is one."""
        return self.attempt if self.attempt is not None and "ended" not in self.attempt else None


def read(folder: Path) -> State:
    """The state in a schedule's folder; an empty one where there is none yet.

    Raises:
        UserError: it cannot be read.
    """
    path = folder / FILE
    try:
        known = State(**json.loads(path.read_text(encoding="utf-8")))
        _check(known)
        return known
    except FileNotFoundError:
        return State()
    except (OSError, ValueError, TypeError) as error:
        raise UserError(
            f"what the schedule remembers cannot be read: {error}",
            where=str(path),
            remedy="Remove the file: the schedule then begins anew, and nothing else is lost.",
        ) from error


def _check(known: State) -> None:
    """Refuses a state with values of another kind than they are written with.

    Raises:
        ValueError: names the value.
    """
    for name in ("since", "looked", "retry_at"):
        at = getattr(known, name)
        if at is not None:
            _shape(name, {name: at}, {name: _NUMBER})
            if not 0 <= at < _NEVER:
                raise ValueError(f"{name} is {at}")
    if known.attempt is not None:
        _shape("attempt", known.attempt, _TRIED)
        if known.open is None:
            _shape("attempt", known.attempt, _ENDED)
        else:
            _shape("attempt", known.attempt, {"look": dict})
            _look("attempt.look", known.attempt["look"])
    if known.trained is not None:
        _look("trained", known.trained)
    _shape("history", {"history": known.history}, {"history": list})
    for index, tried in enumerate(known.history):
        _shape(f"history[{index}]", tried, {**_TRIED, **_ENDED})


def _look(name: str, value: Any) -> None:
    _shape(name, value, {"key": str, "groups": list, "spans": dict})
    for index, group in enumerate(value["groups"]):
        _shape(f"{name}.groups[{index}]", group, {"files": list})


def _shape(name: str, value: Any, kinds: Mapping[str, _Kind]) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is {value!r}")
    for key, kind in kinds.items():
        if isinstance(value.get(key), bool) or not isinstance(value.get(key), kind):
            raise ValueError(f"{name} has no {key} that can be used")


def write(folder: Path, state: State) -> None:
    """Replaces the state as a whole.

    Raises:
        OSError: it cannot be written.
    """
    state.history = state.history[-KEPT:]
    content = json.dumps(asdict(state), ensure_ascii=False, indent=1) + "\n"
    atomic_write(folder / FILE, content)
