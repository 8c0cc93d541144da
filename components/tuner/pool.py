"""The processes of trials: each trial has one of its own, several run side by side."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from multiprocessing import connection
from multiprocessing.context import ForkServerProcess

from components.tuner.journal import FAILED, Result
from components.tuner.trial import Task, forget_failure, main, result_of


class Pool:
    """Trials that run now, by number.

    A process takes nothing over from another trial, gives all its memory back, and takes nobody
    along when it dies. All are forked from one that has done the imports, which take seconds.
    """

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["components.tuner.trial"])
        self._running: dict[int, tuple[ForkServerProcess, Task]] = {}

    def __len__(self) -> int:
        return len(self._running)

    def tasks(self) -> dict[int, Task]:
        """Those that run."""
        return {number: task for number, (_, task) in self._running.items()}

    def start(self, number: int, task: Task) -> None:
        """Starts a trial, or starts one again that had failed."""
        forget_failure(task.folder)
        process = self._context.Process(target=main, args=(task,), name=f"trial-{number}")
        process.start()
        self._running[number] = (process, task)

    def ended(self, seconds: float) -> Iterator[tuple[int, Result]]:
        """The results of those that have ended; waits so long for one.

        A process that has left no result has been killed, or has crashed below Python.
        """
        connection.wait([process.sentinel for process, _ in self._running.values()], seconds)
        for number, (process, task) in list(self._running.items()):
            if process.exitcode is None:
                continue
            del self._running[number]
            yield number, result_of(task.folder) or Result(FAILED, error=_end(process.exitcode))

    def kill(self) -> None:
        """Ends all of them at once; each can go on from its last checkpoint."""
        for process, _ in self._running.values():
            process.kill()
        for process, _ in self._running.values():
            process.join()
        self._running.clear()


def _end(status: int | None) -> str:
    """What an exit status without a result means."""
    if status == -9:
        return "its process was killed (signal 9), perhaps because memory ran out"
    if status is not None and status < 0:
        return f"its process crashed with signal {-status}"
    return f"its process ended with status {status}"
