"""Run jobs, such as trainings, in processes of their own, some at a time.

A job that fails does not stop the others. A job that an earlier call has finished is not run again.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from regard.core.processes import describe_exit

R = TypeVar("R")
_POLL_SECONDS = 0.2


class JobProcess(Protocol):
    """A running process, such as a ``ChildProcess``."""

    def poll(self) -> int | None:
        """Return the exit status (negative: the signal); None while the process is running."""

    def send_signal(self, number: int) -> None:
        """Send a signal to the process if it is still running."""

    def kill(self) -> None:
        """Kill the process if it is still running, and wait for its end."""


class Job(ABC, Generic[R]):
    """A job, whose process writes a log and leaves a result in files.

    Args:
        name: The name of the job.
        log: The file for everything that the process prints.

    Attributes:
        name: As the argument.
        log: As the argument.
    """

    def __init__(self, name: str, log: Path):
        self.name, self.log = name, log

    def finished_result(self) -> R | None:
        """Return the result if an earlier process has finished the job; None: run it."""
        return None

    @abstractmethod
    def start(self) -> JobProcess:
        """Start the process, which resumes what an earlier one has begun."""

    def watch(self) -> None:
        """Report progress; called regularly until the process has ended."""

    @abstractmethod
    def result(self, status: int) -> R:
        """Return the result after the end of the process.

        Args:
            status: The exit status of the process.
        """


@dataclass(frozen=True)
class JobEnd(Generic[R]):
    """How a job ended.

    Attributes:
        job: The job.
        result: Its result.
        status: The exit status of its process; 0 if it had been finished before.
        seconds: The time since its start.
    """

    job: Job[R]
    result: R
    status: int = 0
    seconds: float = 0.0

    def failure(self) -> str:
        """Return why the process failed: the last line of its log, or how it ended."""
        log = self.job.log
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else describe_process_exit(self.status)


@dataclass(frozen=True)
class _RunningJob(Generic[R]):
    job: Job[R]
    process: JobProcess
    started: float


def describe_process_exit(status: int) -> str:
    """Return how the process of a job ended."""
    return f"its process {describe_exit(status)}"


def run_jobs(
    jobs: Sequence[Job[R]],
    limit: int = 1,
    on_start: Callable[[Job[R]], None] = lambda job: None,
    on_end: Callable[[JobEnd[R]], None] = lambda end: None,
    signals: list[int] | None = None,
    on_stop: Callable[[], None] = lambda: None,
) -> bool:
    """Run jobs in their order, and kill those that are running if an error ends the call.

    Args:
        jobs: The jobs.
        limit: How many to run at a time.
        on_start: Called after the start of a job.
        on_end: Called after the end of a job.
        signals: A growing list of the signals that ask to stop. Each is passed on to the running
            jobs, and no more jobs are started. None: there are none.
        on_stop: Called after each of these signals.

    Returns:
        Whether a signal asked to stop.
    """
    waiting = list(jobs)
    running: list[_RunningJob[R]] = []
    received = [] if signals is None else signals
    stopped = False
    try:
        while running or (waiting and not stopped):
            while waiting and len(running) < limit and not stopped:
                job = waiting.pop(0)
                result = job.finished_result()
                if result is not None:
                    on_end(JobEnd(job, result))
                    continue
                running.append(_RunningJob(job, job.start(), time.monotonic()))
                on_start(job)
            while received:
                stopped = True
                on_stop()
                number = received.pop(0)
                for entry in running:
                    entry.process.send_signal(number)
            for entry in list(running):
                status = entry.process.poll()
                entry.job.watch()
                if status is not None:
                    running.remove(entry)
                    seconds = time.monotonic() - entry.started
                    on_end(JobEnd(entry.job, entry.job.result(status), status, seconds))
            if running:
                time.sleep(_POLL_SECONDS)
    finally:
        for entry in running:
            entry.process.kill()
    return stopped
