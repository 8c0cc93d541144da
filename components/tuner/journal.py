"""What a search has done so far, in one file that every start of it begins with."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from components.files import atomic_write

DONE, FAILED = "done", "failed"


@dataclasses.dataclass(frozen=True)
class Result:
    """How a trial ended.

    Attributes:
        state: ``done`` or ``failed``.
        score: the objective of the weights that it would export.
        measures: of these weights, by name.
        step: theirs.
        epochs: that were trained, with those of the trial that it went on with.
        seconds: of training, counted in the same way.
        finished: why it ended.
        error: why it failed.
    """

    state: str
    score: float | None = None
    measures: dict[str, float] = dataclasses.field(default_factory=dict)
    step: int = 0
    epochs: int = 0
    seconds: float = 0.0
    finished: str = ""
    error: str = ""


class Journal:
    """The beginnings and ends of trials, in order: a search is made again by doing them again.

    KerasTuner's own files are several, are not written whole or not at all, and lose a trial that
    began between two of them.

    Args:
        path: the file; what it holds is taken up.
    """

    def __init__(self, path: Path):
        self._path = path
        self.events: list[dict[str, Any]] = []
        if path.exists():
            self.events = json.loads(path.read_text(encoding="utf-8"))

    def begin(self, number: int, drawn: dict[str, Any]) -> None:
        """A trial is about to begin with what the oracle drew."""
        self._write([*self.events, {"event": "begin", "number": number, "drawn": drawn}])

    def end(self, number: int, result: Result) -> None:
        """A trial has ended."""
        told = dataclasses.asdict(result)
        self._write([*self.events, {"event": "end", "number": number, "result": told}])

    def forgive(self) -> int:
        """Takes out the failures after the last success, whose reason may be gone; how many."""
        ends = [event for event in self.events if event["event"] == "end"]
        count = 0
        while ends and ends[-1]["result"]["state"] == FAILED:
            self.events.remove(ends.pop())
            count += 1
        return count

    def trials(self) -> Iterator[tuple[int, dict[str, Any], Result | None]]:
        """Number, what was drawn, and the result of each trial; None of those that go on."""
        results = {
            event["number"]: Result(**event["result"])
            for event in self.events
            if event["event"] == "end"
        }
        for event in self.events:
            if event["event"] == "begin":
                yield event["number"], event["drawn"], results.get(event["number"])

    def _write(self, events: list[dict[str, Any]]) -> None:
        atomic_write(self._path, json.dumps(events, indent=1))
        self.events = events
