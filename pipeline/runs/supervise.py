"""Supervise the worker of a run: start it, follow its events, and pass on signals."""

import contextlib
import dataclasses
import math
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from regard.components.common.run_progress import Progress
from regard.core import events, owned_folders, processes
from regard.core.events import Event
from regard.pipeline.runs.store import Run

POLL_SECONDS = 0.1
GRACE_SECONDS = 20.0


class View(Protocol):
    """Displays a run while it is in progress."""

    def event(self, event: Event, state: Progress) -> None:
        """Show an event that was just applied to ``state``."""

    def refresh(self, state: Progress) -> None:
        """Update elapsed times."""

    def say(self, text: str) -> None:
        """Show a sentence that belongs to no node."""


@dataclasses.dataclass(frozen=True)
class Ending:
    """How the worker ended: its exit status (negative: the signal), and whether on request."""

    status: int
    interrupted: bool


def supervise(
    command: Sequence[str],
    run: Run,
    state: Progress,
    view: View,
    lock_descriptor: int | None = None,
    grace_seconds: float = GRACE_SECONDS,
) -> Ending:
    """Run a worker until it ends or the user stops it.

    The first SIGINT or SIGTERM is passed on to the worker. After ``grace_seconds``, or at the
    second signal, the worker is killed with all its child processes. Its temporary files are in a
    separate folder that is removed at the end, because libraries leave files when they are killed.
    The caller holds the lock of the pipeline.

    Args:
        command: The worker's command line.
        run: The run; its folder receives the log and the events.
        state: The progress, updated with each event.
        view: Displays the progress.
        lock_descriptor: The open lock file, inherited by the worker.
        grace_seconds: Time for the worker to stop.
    """
    with _scratch_folder(run) as folder, processes.collect_stop_signals() as signals:
        worker = processes.ChildProcess(
            command,
            log=run.log,
            folder=run.directory,  # holds no Python files that could hide our packages
            environment={**worker_environment(run), "TMPDIR": folder},
            descriptors=() if lock_descriptor is None else (lock_descriptor,),
        )
        with worker:
            offset, stop_time = 0, math.inf
            while True:
                status = worker.poll()  # before reading events: an ended worker writes no more
                offset = follow_events(run, state, view, offset)
                view.refresh(state)
                if status is not None:
                    break
                if signals and stop_time == math.inf:
                    stop_time = time.monotonic()
                    view.say("Stopping … (press Ctrl-C again to stop immediately)")
                    worker.send_signal(signal.SIGINT)
                elif len(signals) > 1 or time.monotonic() - stop_time > grace_seconds:
                    worker.kill()
                worker.wait(POLL_SECONDS)
    state.stop()
    view.refresh(state)
    return Ending(status, interrupted=bool(signals))


def follow_events(run: Run, state: Progress, view: View, offset: int = 0) -> int:
    """Apply and show the events of a run after byte ``offset``, and return their end."""
    for event, end in events.read(run.events, offset):
        state.apply(event)
        view.event(event, state)
        offset = end
    return offset


def _scratch_folder(run: Run) -> tempfile.TemporaryDirectory[str]:
    """Create a folder for temporary files; remove those of killed runs of the same pipeline."""
    pipeline = run.directory.parents[1].stat()
    prefix = f"regard-{pipeline.st_dev:x}-{pipeline.st_ino:x}-"
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # it may be that of another user
            if owned_folders.is_owned(path, owned_folders.SCRATCH):
                owned_folders.remove_content(path, owned_folders.mark_name(owned_folders.SCRATCH))
    folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    owned_folders.mark(folder.name, owned_folders.SCRATCH)
    return folder


def worker_command(run: Run) -> list[str]:
    """The command line of the worker of a run."""
    return [sys.executable, "-m", "regard.pipeline.runs.worker", str(run.directory)]


def worker_environment(run: Run) -> dict[str, str]:
    """The environment variables of the worker."""
    environment = processes.child_environment(REGARD_HOME=str(run.workspace.home))
    environment.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")  # it shares the GPU with others
    environment[events.VARIABLE] = str(run.events)
    environment["PYTHONUNBUFFERED"] = "1"  # keep the last lines of a killed worker
    environment["PYTHONFAULTHANDLER"] = "1"
    environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    return environment
