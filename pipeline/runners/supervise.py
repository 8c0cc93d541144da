"""The light process over a run: starts the worker, follows its events, passes on signals."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from components import events
from pipeline.live import View
from pipeline.progress import Progress
from pipeline.runs import Run

POLL_SECONDS = 0.1
GRACE_SECONDS = 20.0


@dataclasses.dataclass(frozen=True)
class Ending:
    """How the worker ended: its exit status (negative: the signal), and whether on request."""

    status: int
    interrupted: bool


class _Stop:
    """Counts the SIGINTs and SIGTERMs that the user sends."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


def supervise(
    command: Sequence[str],
    run: Run,
    state: Progress,
    view: View,
    lock_descriptor: int | None = None,
    environment: Mapping[str, str] | None = None,
    grace_seconds: float = GRACE_SECONDS,
) -> Ending:
    """Runs a worker to its end, or stops it when the user asks for it.

    The first SIGINT or SIGTERM asks the worker to stop and waits for it; after ``grace_seconds``,
    or at the second signal, it is killed with all its children. Its temporary files are in a
    folder of their own, which goes with it: libraries leave some behind when a process is killed.

    Args:
        command: the worker's command line.
        run: where its log and its events go.
        state: takes in the events.
        view: is told of them.
        lock_descriptor: the open lock file, which the worker holds, too.
        environment: the worker's environment; see :func:`worker_environment`.
        grace_seconds: how long an asked worker may take.
    """
    scratch = tempfile.TemporaryDirectory(prefix="regard-", ignore_cleanup_errors=True)
    with scratch as folder, _signals() as stop, open(run.log, "ab") as log:
        worker = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # never written to: its end tells the worker that we are gone
            stdout=log,
            stderr=log,
            cwd=run.directory,  # holds no Python files that could hide our packages
            env={**(os.environ if environment is None else environment), "TMPDIR": folder},
            pass_fds=() if lock_descriptor is None else (lock_descriptor,),
            start_new_session=True,  # a terminal's Ctrl-C reaches only this process
        )
        try:
            _follow(worker, run, state, view, stop, grace_seconds)
        finally:
            if worker.poll() is None:
                _kill(worker)
            if worker.stdin is not None:
                worker.stdin.close()
    state.stop()
    view.refresh(state)
    return Ending(worker.returncode, interrupted=stop.count > 0)


def _follow(
    worker: subprocess.Popen[bytes],
    run: Run,
    state: Progress,
    view: View,
    stop: _Stop,
    grace_seconds: float,
) -> None:
    offset, asked_at = 0, None
    while True:
        ended = worker.poll() is not None  # before reading: nothing is written after it
        for event, offset in events.read(run.events, offset):  # noqa: B007, B020
            state.apply(event)
            view.event(event, state)
        view.refresh(state)
        if ended:
            return
        if stop.count and asked_at is None:
            asked_at = time.monotonic()
            view.say("Stopping … (Ctrl-C again ends it at once)")
            worker.send_signal(signal.SIGINT)
        elif stop.count > 1 or (
            asked_at is not None and time.monotonic() - asked_at > grace_seconds
        ):
            _kill(worker)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(POLL_SECONDS)


def _kill(worker: subprocess.Popen[bytes]) -> None:
    """Ends the worker and the processes that its nodes started; they are one group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


@contextlib.contextmanager
def _signals() -> Iterator[_Stop]:
    stop = _Stop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def worker_command(
    run: Run,
    workspace: Path,
    runner: str,
    first: str | None,
    last: str | None,
    tune: bool = False,
) -> list[str]:
    """The command line of the worker of a run, or of a search."""
    command = [sys.executable, "-m", "pipeline.runners.worker", "--watch-stdin"]
    command += ["--config", str(run.config), "--run", str(run.directory)]
    command += ["--workspace", str(workspace), "--runner", runner]
    command += ["--from", first] if first else []
    command += ["--to", last] if last else []
    command += ["--tune"] if tune else []
    return command


def worker_environment(run: Run, workspace: Path) -> dict[str, str]:
    """This process's environment, with what the worker needs beside it."""
    environment = child_environment(workspace)
    environment[events.VARIABLE] = str(run.events)
    environment["PYTHONUNBUFFERED"] = "1"  # a killed worker's last words are in the log
    environment["PYTHONFAULTHANDLER"] = "1"
    environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    return environment


def child_environment(workspace: Path) -> dict[str, str]:
    """This process's environment for another one that finds our packages and the workspace."""
    environment = dict(os.environ)
    environment["REGARD_HOME"] = str(workspace)
    root = str(Path(__file__).resolve().parents[2])
    if root != sysconfig.get_paths()["purelib"]:  # a checkout that is not installed
        paths = [root, environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment
