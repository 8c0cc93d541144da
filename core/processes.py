"""Start child processes that end with their parent, and say how they ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

import regard

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ChildProcess:
    """A command that runs in a session of its own.

    A terminal's Ctrl-C therefore reaches only the parent, which decides what to do about it, and
    ``kill`` ends the processes that the command has started as well. The standard input is a pipe
    that is never written to: when the parent ends, it closes (see ``end_with_parent``).

    Args:
        command: The command line.
        log: File for standard error, and for standard output as well unless ``output`` is given;
            None inherits both streams.
        output: File for standard output.
        folder: Working directory.
        environment: Environment variables; None inherits them.
        descriptors: Open file descriptors that the child inherits, such as that of a lock.
        detached: Whether the child outlives its parent; it then has no standard input.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path | None = None,
        output: Path | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
        detached: bool = False,
    ):
        with contextlib.ExitStack() as files:
            stderr = None if log is None else files.enter_context(open(log, "wb"))
            stdout = stderr if output is None else files.enter_context(open(output, "wb"))
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if detached else subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                cwd=folder,
                env=environment,
                pass_fds=descriptors,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the exit status (negative: the signal); None while the process is running."""
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait up to ``timeout`` seconds; return the exit status, or None if still running."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout)
        return None

    def send_signal(self, number: int) -> None:
        """Send a signal to the process if it is still running."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the process, if it still runs, and every process that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()  # also what a command that was killed has left
        if self._process.stdin is not None:
            self._process.stdin.close()


def end_with_parent() -> None:
    """End this process at once when the ``ChildProcess`` parent that started it has ended.

    The kernel sends SIGIO when the pipe on standard input closes, to the whole process group if
    this process leads it. A watching thread would not do: TensorFlow holds Python's lock while it
    waits for other workers. Child processes get an empty standard input of their own.
    """
    pipe = os.dup(0)
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), 0)
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    group = os.getpgrp()
    leads_group = group == os.getpid()
    fcntl.fcntl(pipe, fcntl.F_SETOWN, -group if leads_group else os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([pipe], [], [], 0)[0]:  # the parent ended before
        os._exit(1)


@contextlib.contextmanager
def handle_stop_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call a function at SIGINT and SIGTERM while the block runs; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = [signal.signal(number, handler) for number in _STOP_SIGNALS]
    try:
        yield
    finally:
        for number, original in zip(_STOP_SIGNALS, previous, strict=True):
            signal.signal(number, original)


@contextlib.contextmanager
def collect_stop_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in a growing list instead of letting them end this process."""
    received: list[int] = []
    with handle_stop_signals(lambda number, _: received.append(number)):
        yield received


def describe_exit(status: int) -> str:
    """Return the end of a process as a verb phrase, such as ``was killed by signal 9 …``."""
    if status == -signal.SIGKILL:
        return "was killed by signal 9, probably because memory ran out"
    if status < 0:
        return f"crashed with {signal.Signals(-status).name}"
    return f"exited with status {status}"


def child_environment(**variables: str) -> dict[str, str]:
    """Return this process's environment, extended so that a Python child can import Regard."""
    environment = {**os.environ, **variables}
    root = str(Path(regard.__file__).resolve().parents[1])
    if root != sysconfig.get_paths()["purelib"]:  # a checkout that is not installed
        paths = [root, environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment
