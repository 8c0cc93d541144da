"""``regard worker``: a machine that trains along with the chief's run."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

import typer

from pipeline.commands import terminal


def worker() -> None:
    """Train along with a run on another machine, as one of several workers.

    The chief, worker 0, is started with [bold]regard run CONFIG[/bold], where the file says
    training.devices: workers. The others need no configuration: they wait for the chief's Trainer,
    are told what to do, and end with the training. Every one has its own TF_CONFIG and sees the
    chief's files under the same paths.

    [bold]Example[/bold]

      TF_CONFIG='{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker",
      "index": 1}}' regard worker

    [bold]Exit status[/bold]: 0 the training has ended; 1 it failed; 2 something is to be mended, or
    a worker was lost; 130 interrupted; 143 ended by SIGTERM.
    """
    from components.trainer import cluster, member

    place = cluster.place(os.environ)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    text = f"Worker {place.index} of {len(place.addresses)}: waiting for {place.addresses[0]} …"
    terminal.err().print(text, soft_wrap=True, highlight=False)
    with _signals():
        member.follow()
    terminal.err().print("The training has ended.")


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """SIGINT and SIGTERM end the command, with the status that shells know them by."""

    def end(number: int, frame: FrameType | None) -> None:
        raise typer.Exit(128 + number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, end) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
