"""A run in processes that `runs` can kill: a supervisor and its worker, both cheap forks."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from regard.core import events

NAME = "tiny"
START, END = "start", "end"  # the phases before the first node, and after the last
LAST = "Reporter"
POLL_SECONDS = 0.001
CHECKPOINT_SECONDS = 0.1  # a configuration has at least one second
ATTEMPT_SECONDS = 300.0


class ForkedPopen(subprocess.Popen[bytes]):
    """Starts a worker as a fork of this process, in place of ``python -m regard…worker``."""

    def _execute_child(self, args: Any, *rest: Any, **more: Any) -> None:
        (_, _, _, _, folder, environment, _, _, _, stdin, write, _, stdout, _, stderr) = rest[:15]
        self.pid = os.fork()
        if self.pid:
            self._child_created = True
            os.close(stdin)
            return
        status = 1
        try:
            os.setsid()
            os.close(write)
            for number, descriptor in enumerate((stdin, stdout, stderr)):
                os.dup2(descriptor, number)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            status = _run_worker(args[-1])
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def _run_worker(folder: str) -> int:
    from regard.components.trainer import training_loop
    from regard.core.processes import end_with_parent
    from regard.pipeline.runs import worker

    periodic = training_loop.PeriodicCheckpoint
    training_loop.PeriodicCheckpoint = lambda saved, progress, _: periodic(
        saved, progress, CHECKPOINT_SECONDS
    )
    tempfile.tempdir = None
    end_with_parent()
    return worker.main(folder)


class SilentDisplay:
    """A display and view that shows nothing."""

    def message(self, text: str) -> None:
        print(text, flush=True)

    @contextlib.contextmanager
    def view(self, title: str, log: str) -> Iterator[SilentDisplay]:
        yield self

    def event(self, event: object, state: object) -> None:
        pass

    def refresh(self, state: object) -> None:
        pass

    def say(self, text: str) -> None:
        pass


def supervise(folder: Path) -> None:
    """Do what ``regard run --wait`` does; for a process of its own."""
    from regard.core import processes
    from regard.core.errors import UserError
    from regard.pipeline.runs.launch import RunRequest, run_pipeline

    os.setsid()
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number in (1, 2):
        os.dup2(output, number)
    os.environ.update(REGARD_HOME=str(folder / "home"), TMPDIR=str(folder / "tmp"))
    tempfile.tempdir, status = None, 1
    stand_in = {**vars(subprocess), "Popen": ForkedPopen}
    processes.subprocess = type("subprocess", (), stand_in)  # type: ignore[assignment]
    try:
        request = RunRequest(folder.parent / "tiny.yaml", wait=True)
        status = run_pipeline(request, SilentDisplay()).outcome.exit_status
    except UserError as error:
        print(error, error.where, error.remedy)
        status = 2
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


@dataclasses.dataclass
class Attempt:
    """A run that is in progress, followed by its events."""

    folder: Path
    known: set[str]

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        self.process = context.Process(target=supervise, args=(self.folder,))
        self.process.start()
        self.phase, self.started, self.seconds = START, time.monotonic(), dict[str, float]()
        self._offset, self._path, self.run = 0, None, None

    def update(self) -> None:
        """Read new events."""
        if self._path is None:
            for path in self.folder.glob(f"home/pipelines/{NAME}/runs/*"):
                if path.name not in self.known:
                    self._path, self.run = path / "events.jsonl", path
            if self._path is None:
                return
        for event, offset in events.read(self._path, self._offset):
            self._offset = offset
            if event["kind"] == "node":
                if event["state"] == "running":
                    self._enter(event["node"])
                elif event["node"] == LAST:
                    self._enter(END)

    def _enter(self, phase: str) -> None:
        now = time.monotonic()
        self.seconds[self.phase] = now - self.started
        self.phase, self.started = phase, now

    def tree(self) -> list[psutil.Process]:
        """All living processes of the attempt, the supervisor first, then the worker."""
        with contextlib.suppress(psutil.Error):
            supervisor = psutil.Process(self.process.pid)
            return [supervisor, *supervisor.children(recursive=True)]
        return []


def wait_for(attempt: Attempt, phase: str, seconds: float, by_name: bool = False) -> bool:
    """Wait until some seconds after the beginning of a phase; return False if the run ended."""
    deadline, reached = time.monotonic() + ATTEMPT_SECONDS, None
    while attempt.process.is_alive():
        attempt.update()
        if reached is None and phase in (attempt.phase, *attempt.seconds):
            reached = time.monotonic()
        if reached is not None and time.monotonic() >= reached + seconds:
            return True
        if time.monotonic() > deadline:
            raise TimeoutError(f"the run did not end in {ATTEMPT_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)
    attempt.update()
    return False


def kill(attempt: Attempt, who: str) -> tuple[list[psutil.Process], bool]:
    """Kill processes of an attempt; return all that it had, and whether there was one to kill."""
    tree = attempt.tree()
    workers = [process for process in tree[1:] if os.getsid(process.pid) == process.pid]
    victims = {"all": tree, "supervisor": tree[:1], "worker": workers}[who]
    for process in victims:
        process.kill()
    return tree, bool(victims)
