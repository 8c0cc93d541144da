"""Runs the models of a comparison, one after the other or several at once."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from components import events
from pipeline import machine, runs
from pipeline.compare.board import Board
from pipeline.compare.results import SIDE_BY_SIDE
from pipeline.nodes import NODES
from pipeline.progress import Progress
from pipeline.runs import Run
from pipeline.workspace import VARIABLE, PipelinePaths, Workspace

POLL_SECONDS = 0.2
INTERRUPTED = 130
_THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")


@dataclasses.dataclass(frozen=True)
class Job:
    """One model to run: its label, its pipeline's folder, its command line and its output."""

    label: str
    paths: PipelinePaths
    command: Sequence[str]
    log: Path


def job_command(config: Path) -> list[str]:
    """The command line that runs one configuration."""
    return [sys.executable, "-m", "pipeline.compare.job", str(config)]


def job_environment(workspace: Workspace, jobs: int) -> dict[str, str]:
    """This process's environment; ``jobs`` that run at once get the cores divided among them.

    What the user has set stays as it is.
    """
    environment = {**os.environ, VARIABLE: str(workspace.home)}
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if jobs > 1:
        threads = str(max(1, machine.cores() // jobs))
        for name in _THREADS:
            environment.setdefault(name, threads)
    return environment


def run_all(
    jobs: Sequence[Job],
    at_once: int,
    board: Board,
    ended: Callable[[Job, int], None],
    environment: Mapping[str, str],
) -> bool:
    """Runs every job; one that fails does not stop the others.

    The first SIGINT or SIGTERM asks those that run to stop, and starts no more; each further one
    is passed on to them, too.

    Args:
        jobs: in the order in which they start.
        at_once: how many may run at the same time.
        board: shows how they go.
        ended: called with each job that has ended, and its exit status.
        environment: of every job.

    Returns:
        Whether all were allowed to end.
    """
    waiting = list(jobs)
    active: list[_Active] = []
    stopped = False
    with _signals() as received:
        try:
            while active or (waiting and not stopped):
                while waiting and len(active) < at_once and not stopped:
                    active.append(_Active(waiting.pop(0), environment))
                    board.started(active[-1].job.label)
                while received:
                    stopped = True
                    board.say("Stopping … what is done stays done")
                    _pass_on(received.pop(0), active)
                for one in list(active):
                    status = one.poll(board)
                    if status is not None:
                        active.remove(one)
                        one.record(at_once)
                        ended(one.job, status)
                board.refresh()
                time.sleep(POLL_SECONDS)
        finally:
            for one in active:
                one.kill()
    return not stopped


class _Active:
    """A job that runs, and the events of its newest run."""

    def __init__(self, job: Job, environment: Mapping[str, str]):
        self.job = job
        self._before = {run.id for run in runs.runs_of(job.paths)}
        self._run: Run | None = None
        self._offset = 0
        self._state = Progress(NODES)
        job.log.parent.mkdir(parents=True, exist_ok=True)
        with open(job.log, "wb") as log:
            self.process = subprocess.Popen(
                job.command,
                stdin=subprocess.PIPE,  # never written to: its end tells the job that we are gone
                stdout=log,
                stderr=log,
                cwd=job.log.parent,  # holds no Python files that could hide our packages
                env=dict(environment),
                start_new_session=True,  # a terminal's Ctrl-C reaches only this process
            )

    def poll(self, board: Board) -> int | None:
        """Tells the board what is new; gives the exit status once the job has ended."""
        status = self.process.poll()  # before reading: nothing is written after it
        if self._run is None:
            new = [run for run in runs.runs_of(self.job.paths) if run.id not in self._before]
            self._run = new[-1] if new else None
        if self._run is not None:
            for event, self._offset in events.read(self._run.events, self._offset):  # noqa: B020
                self._state.apply(event)
            node = self._state.running()
            if node is not None:
                board.progress(self.job.label, node.name, node.text)
        return status

    def record(self, at_once: int) -> None:
        """Writes into the run's record how many shared the machine: its speed depends on it."""
        if self._run is not None:
            with contextlib.suppress(OSError):
                self._run.update(**{SIDE_BY_SIDE: at_once})
        if self.process.stdin is not None:
            self.process.stdin.close()

    def kill(self) -> None:
        """Ends the job at once; its worker ends with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _pass_on(number: int, active: Sequence[_Active]) -> None:
    for one in active:
        with contextlib.suppress(ProcessLookupError):
            one.process.send_signal(number)


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """The SIGINTs and SIGTERMs that come in, as a list that grows."""
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, note) for number in numbers]
    try:
        yield received
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
