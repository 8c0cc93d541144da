"""One training at a time in a folder of checkpoints, and none is taken away while it goes on.

Runs of a pipeline on a cluster share the folder that the trainings' own folders are in, and two
runs with the same data and settings are the same training. The lock is the kernel's, of an open
file: it is given back when the process dies, however it dies. A file for writing, since a lock of
a folder, or of one for reading, is refused on NFS, which shared volumes often are.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from components import events

_LOCK = ".lock"


@contextlib.contextmanager
def held(folder: str | Path, node: str) -> Iterator[None]:
    """Holds the folder of a training, which is made; waits while another run holds it.

    Args:
        folder: of the training's checkpoints.
        node: who tells that it waits, or that the folder cannot be held.
    """
    folder = Path(folder)
    descriptor = None
    while descriptor is None:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _taken(folder, node)
    try:
        yield
    finally:
        os.close(descriptor)


def remove(folder: Path) -> None:
    """Removes the folder of a training, unless a run holds it."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:  # no folder, or not ours
        return
    try:
        with contextlib.suppress(_NoLocks):
            _lock(descriptor)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)


def _taken(folder: Path, node: str) -> int | None:
    """The open lock of a folder; None where the folder was removed in between."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except FileNotFoundError:
        return None
    try:
        _lock(descriptor)
    except BlockingIOError:
        events.emit("note", node=node, text="waiting for another run of the same training")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except _NoLocks as error:
        text = f"{folder} cannot be locked ({error.strerror}): run one training of it at a time"
        events.emit("warning", node=node, text=text)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), os.stat(folder / _LOCK)):
            return descriptor
    os.close(descriptor)
    return None


class _NoLocks(OSError):
    """The volume knows no locks."""


def _lock(descriptor: int) -> None:
    """Takes the lock of an open file.

    Raises:
        BlockingIOError: another process holds it.
        _NoLocks: nobody can.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        raise _NoLocks(error.errno, error.strerror) from error
