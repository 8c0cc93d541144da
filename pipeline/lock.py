"""One run of a pipeline at a time: an advisory lock on a file in the pipeline's folder.

``flock`` belongs to the open file, not to the process: a worker that inherits the descriptor
keeps the lock alive when its parent dies, and the kernel frees it when both are gone. So there
are no stale locks, whatever is killed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from components.errors import UserError

GRACE_SECONDS = 0.5  # a listing holds the lock for an instant; a worker may be about to end


class PipelineLock:
    """A held lock; :attr:`descriptor` may be handed to a child process, which then holds it too."""

    def __init__(self, path: Path, descriptor: int):
        self.path = path
        self.descriptor = descriptor

    def describe(self, run: str) -> None:
        """Writes into the file who holds it, for the message that another run gets."""
        holder = {"pid": os.getpid(), "run": run, "started": time.time()}
        # In place, not by rename: a new file would not be the locked one.
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, json.dumps(holder).encode(), 0)

    def release(self) -> None:
        """Lets go; the lock stays held as long as a child has the descriptor open."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> PipelineLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def acquire(
    path: Path,
    wait: bool = False,
    on_wait: Callable[[dict[str, Any]], None] | None = None,
    poll_seconds: float = 0.5,
    refusal: Callable[[Path, dict[str, Any]], UserError] | None = None,
) -> PipelineLock:
    """Takes the lock of a pipeline.

    Args:
        path: the lock file; it and its folder are made if they are not there.
        wait: whether to wait for another run to end instead of refusing.
        on_wait: called once, with the holder's description, when there is something to wait for.
        poll_seconds: seconds between two attempts while waiting.
        refusal: makes the error, of the path and the holder; None: that a run is going on.

    Raises:
        UserError: another run holds the lock (and ``wait`` is false), or the folder cannot be
            written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(
            f"the pipeline's folder cannot be written: {error.strerror}",
            where=str(path.parent),
            remedy="Give REGARD_HOME a folder that you may write to and that has free space.",
        ) from error
    told = False
    refuse_at = time.monotonic() + GRACE_SECONDS
    try:
        while not _try_lock(descriptor, path):
            current = holder(path)
            if not wait:
                if time.monotonic() < refuse_at:
                    time.sleep(0.05)
                    continue
                raise (refusal or _refusal)(path, current)
            if not told and on_wait is not None:
                on_wait(current)
            told = True
            time.sleep(poll_seconds)
    except BaseException:
        os.close(descriptor)
        raise
    return PipelineLock(path, descriptor)


def holder(path: Path) -> dict[str, Any]:
    """Who wrote itself into the lock file last: ``pid``, ``run``, ``started``; may be empty."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor, path, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, path: Path, mode: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise
        raise UserError(
            "the file system of the workspace has no file locks",
            where=str(path),
            remedy="Give REGARD_HOME a folder on a local disk.",
        ) from error
    return True


def _refusal(path: Path, current: dict[str, Any]) -> UserError:
    name, process = path.parent.name, current.get("pid")
    who = f"run {current['run']}, process {process}" if current.get("run") else "starting just now"
    return UserError(
        f"another run of the pipeline {name} is going on ({who})",
        where=str(path),
        remedy="Wait for it with --wait"
        + (f", or stop it with `kill {process}`." if process else "."),
    )
