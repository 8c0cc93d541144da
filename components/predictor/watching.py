"""How far the work is, told while Beam does it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from components import events
from components.predictor import parts
from components.predictor.parts import Told

NODE = "Predictor"
SECONDS_BETWEEN_EVENTS = 0.5


def seconds(told: Iterable[Told]) -> float:
    """What the worker that was longest at it took, without loading the model.

    The workers ask side by side, so that this is how long all had to wait.
    """
    by_worker: dict[str, float] = {}
    for one in told:
        by_worker[one.worker] = by_worker.get(one.worker, 0.0) + one.seconds
    return max(by_worker.values(), default=0.0)


def speed(told: Iterable[Told]) -> float:
    """Rows a second of all workers together; loading the model is not counted."""
    known = list(told)
    taken = seconds(known)
    return sum(one.rows for one in known) / taken if taken else 0.0


@contextlib.contextmanager
def watching(
    folder: Path, label: str, noun: str, rows: int, first: float, last: float
) -> Iterator[None]:
    """Emits progress events while the block runs, and the last one when it has ended well.

    The parts tell it, not the workers: those of a cluster cannot reach the file of events.

    Args:
        folder: where the parts appear.
        label: what is asked, for people.
        noun: what the rows are called.
        rows: how many there are.
        first: the fraction at which it begins.
        last: the one at which it ends.
    """
    over = threading.Event()
    known: dict[int, Told] = {}

    def look() -> None:
        nonlocal known
        before = len(known)
        known = parts.done(folder, known)
        if len(known) > before:
            _tell(known, label, noun, rows, first, last)

    def repeat() -> None:
        while not over.wait(SECONDS_BETWEEN_EVENTS):
            look()

    thread = threading.Thread(target=repeat, name="watching", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    look()


def _tell(
    known: dict[int, Told], label: str, noun: str, rows: int, first: float, last: float
) -> None:
    done = sum(told.rows for told in known.values())
    rate = speed(known.values())
    events.emit(
        "progress",
        node=NODE,
        text=f"{label}: {done:,} of {rows:,} {noun}, {rate:,.0f} {noun}/s",
        fraction=first + (last - first) * done / rows,
        sentences_per_second=round(rate, 1),
    )
