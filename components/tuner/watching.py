"""What a search tells while it goes on: how the running trials stand, and each one's end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from components import events
from components.tuner.journal import DONE
from components.tuner.ranking import best_of, figure_of, values_text
from components.tuner.trial import Task

NODE = "Tuner"


class Watch:
    """Reads what the running trials tell, and emits how far the search is.

    Args:
        most: the trials of the whole search.
    """

    def __init__(self, most: int):
        self._most = most
        self._heard: dict[int, tuple[int, str, float]] = {}  # offset, text, fraction of a trial
        self._told = ""

    def tell(self, rows: Sequence[Mapping[str, Any]], running: Mapping[int, Task]) -> None:
        """Emits it, where there is something new.

        Args:
            rows: of `Trials.rows`.
            running: the trials that run now, by number from 0.
        """
        ended = sum("score" in row for row in rows)
        parts, done = [f"{ended} of {self._most} trials"], float(ended)
        for number, task in running.items():
            text, fraction = self._hear(number, Path(task.folder) / "events.jsonl")
            done += fraction
            parts.append(f"trial {number + 1}{f': {text}' if text else ''}")
        text = " · ".join(parts)
        if text != self._told:
            self._told = text
            events.emit("progress", node=NODE, text=text, fraction=min(1.0, done / self._most))

    def _hear(self, number: int, path: Path) -> tuple[str, float]:
        """What a trial's own process told last, and how far it is."""
        offset, text, fraction = self._heard.get(number, (0, "", 0.0))
        for event, offset in events.read(path, offset):  # noqa: B007, B020
            if event.get("kind") == "progress":
                text = str(event.get("text", ""))
                fraction = event.get("fraction") or fraction
        self._heard[number] = (offset, text, fraction)
        return text, fraction


def tell_end(rows: Sequence[Mapping[str, Any]], number: int, tune: Mapping[str, Any]) -> None:
    """Emits how a trial ended, and which is the best so far."""
    row = next(row for row in rows if row["trial"] == number)
    name = f"trial {number}"
    if row["continues"]:
        name += f", from {row['continues']} on"
    values = values_text(row["values"])
    if row["state"] != DONE:
        events.emit("warning", node=NODE, text=f"{name}: {values}: failed: {row['error']}")
        return
    objective = tune["objective"]
    best = best_of(rows, tune["direction"])
    text = f"{name}: {values}: {figure_of(objective, row['score'])}"
    if best["trial"] == number:
        text += ", the best so far"
    else:
        text += f"; best so far {figure_of(objective, best['score'])}, trial {best['trial']}"
    events.emit("note", node=NODE, text=text)
