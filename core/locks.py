"""Advisory file locks that the kernel releases when their holder dies, however it dies.

``flock`` belongs to the open file, not to the process: a child process that inherits the
descriptor holds the lock as well, until both have ended. The package ``filelock`` is no substitute:
its release also unlocks the file for the child, and it has no shared locks. Only files are locked,
never folders: NFS keeps a lock of a folder on one host, and refuses an exclusive lock of a file
that is not open for writing. This module is in the lowest layer because the model server uses it,
too.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from regard.core.regular_files import open_regular, read_regular

_POLL_SECONDS = 0.05
_MAX_HOLDER_BYTES = 1 << 16
_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)


class LocksUnsupportedError(OSError):
    """The file system has no file locks."""


class LockHolder(TypedDict, total=False):
    """The process that described itself in a lock file; empty where nobody did."""

    pid: int
    run: str
    started: float


class Lock:
    """An acquired lock. A child process that inherits :attr:`descriptor` holds it as well."""

    def __init__(self, path: Path, descriptor: int):
        self.path = path
        self.descriptor = descriptor

    def describe(self, run: str) -> None:
        """Write this process into the lock file, for the error message of other processes."""
        holder: LockHolder = {"pid": os.getpid(), "run": run, "started": time.time()}
        # In place: a renamed file would not be the locked one.
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, json.dumps(holder).encode(), 0)

    def release(self) -> None:
        """Release the lock, unless a child process still has the descriptor open."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def acquire(
    path: Path, timeout: float | None = 0.0, on_wait: Callable[[], None] | None = None
) -> Lock:
    """Acquire the exclusive lock of a file, which is created with its folder if it is missing.

    Args:
        path: The lock file. It is opened for writing, as NFS requires it.
        timeout: Seconds to keep trying; None waits until the lock is free.
        on_wait: Called before an unlimited wait for another process.

    Raises:
        BlockingIOError: Another process still holds the lock after ``timeout``.
        LocksUnsupportedError: The file system has no file locks.
        OSError: The path is a symbolic link or no regular file, or cannot be written.
    """
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # the folder or the file was just removed
            descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
            return _lock(path, descriptor, fcntl.LOCK_EX, timeout, on_wait)


def acquire_existing(path: Path, timeout: float | None = 0.0, shared: bool = False) -> Lock:
    """Acquire the lock of an existing file, exclusively or shared with other readers.

    Raises:
        BlockingIOError: Another process still holds the lock after ``timeout``.
        FileNotFoundError: The file does not exist, or was removed meanwhile.
        LocksUnsupportedError: The file system has no file locks.
    """
    is_reader = shared or not os.access(path, os.W_OK)
    descriptor = open_regular(path, os.O_RDONLY if is_reader else os.O_RDWR)
    return _lock(path, descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, timeout, None)


def host_id() -> str:
    """Return an id of the running kernel, which no other host has; empty if it is not known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def is_locked(path: Path) -> bool:
    """Return whether a living process holds the exclusive lock of a file."""
    try:
        descriptor = open_regular(path)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor, fcntl.LOCK_SH)
    except LocksUnsupportedError:  # then nobody can hold it
        return False
    finally:
        os.close(descriptor)


def read_holder(path: Path) -> LockHolder:
    """Return the process that last described itself in a lock file; empty if there is none."""
    try:
        content = json.loads(read_regular(path, _MAX_HOLDER_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}  # type: ignore[return-value]


def _lock(
    path: Path,
    descriptor: int,
    mode: int,
    timeout: float | None,
    on_wait: Callable[[], None] | None,
) -> Lock:
    """Lock an open file, which is closed on any error.

    Raises:
        FileNotFoundError: Another file has taken its place, or none.
    """
    try:
        deadline = time.monotonic() + (timeout or 0.0)
        while not _try_lock(descriptor, mode):
            if timeout is None:
                if on_wait is not None:
                    on_wait()
                fcntl.flock(descriptor, mode)
                break
            if time.monotonic() >= deadline:
                raise BlockingIOError(errno.EAGAIN, "Locked by another process", str(path))
            time.sleep(_POLL_SECONDS)
        if not os.path.samestat(os.fstat(descriptor), os.stat(path)):
            raise FileNotFoundError(errno.ENOENT, "Removed while it was being locked", str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return Lock(path, descriptor)


def _try_lock(descriptor: int, mode: int) -> bool:
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise LocksUnsupportedError(error.errno, error.strerror) from error
        raise
    return True
