"""Trains the models of a comparison: one after another, or several at a time.

Each model is one process, ``python -m regard.pipeline.compare.jobs CONFIG``, that runs ``regard run
CONFIG --to Evaluator --wait`` and ends with this one.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.components.common import run_record
from regard.core import processes
from regard.core.formatting import format_duration
from regard.pipeline.compare.folder import ComparisonFolder
from regard.pipeline.compare.gather import LAST_NODE, model_result
from regard.pipeline.compare.matrix import Member, ModelComparison
from regard.pipeline.compare.results import FINISHED, ModelResult
from regard.pipeline.compare.table import summary_line
from regard.pipeline.doctor import machine
from regard.pipeline.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = 130
_POLL_SECONDS = 0.2
_THREAD_VARIABLES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")


@dataclasses.dataclass
class ComparisonOutcome:
    """Whether the user interrupted the comparison, and why models failed, by label."""

    interrupted: bool = False
    failures: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class _Job:
    """A model that is being trained."""

    member: Member
    process: processes.ChildProcess
    log: Path
    started: float


def job_command(config: Path) -> list[str]:
    """Return the command that trains and evaluates one configuration."""
    return [sys.executable, "-m", "regard.pipeline.compare.jobs", str(config)]


def train_models(
    comparison: ModelComparison,
    labels: Sequence[str],
    jobs: int,
    workspace: Workspace,
    console: Console,
    on_end: Callable[[], None],
) -> ComparisonOutcome:
    """Train and evaluate models; one that fails does not stop the others.

    Models that are finished run as well: their steps are in the cache. The first SIGINT or SIGTERM
    stops the running models and starts no more; further ones are passed on to them.

    Args:
        comparison: all models.
        labels: the models to train.
        jobs: how many to train at a time; they share the cores.
        workspace: contains the pipelines and the folder of the comparison.
        console: where to report starts and ends.
        on_end: called after each model.
    """
    folder = ComparisonFolder.of(workspace, comparison.name)
    waiting = [member for member in comparison.members if member.label in labels]
    jobs = min(jobs, len(waiting))
    environment = _environment(workspace, jobs)
    running: list[_Job] = []
    outcome = ComparisonOutcome()
    with processes.collect_stop_signals() as signals:
        try:
            while running or (waiting and not outcome.interrupted):
                while waiting and len(running) < jobs and not outcome.interrupted:
                    running.append(_start(waiting.pop(0), folder, environment))
                    _print(console, running[-1].member.label, "training …")
                while signals:
                    outcome.interrupted = True
                    console.print("Stopping …")
                    number = signals.pop(0)
                    for job in running:
                        job.process.send_signal(number)
                for job in list(running):
                    status = job.process.poll()
                    if status is not None:
                        running.remove(job)
                        result = model_result(job.member, workspace)
                        text = _describe_end(job, status, result, outcome.failures)
                        _print(console, job.member.label, text)
                        on_end()
                time.sleep(_POLL_SECONDS)
        finally:
            for job in running:
                job.process.kill()
    return outcome


def _environment(workspace: Workspace, jobs: int) -> dict[str, str]:
    """Return the environment of the jobs, which share the cores unless the user has set threads."""
    environment = processes.child_environment(REGARD_HOME=str(workspace.home))
    if jobs > 1:
        for name in _THREAD_VARIABLES:
            environment.setdefault(name, str(max(1, machine.cores() // jobs)))
    return environment


def _start(member: Member, folder: ComparisonFolder, environment: dict[str, str]) -> _Job:
    log = folder.log(member.label)
    log.parent.mkdir(parents=True, exist_ok=True)
    process = processes.ChildProcess(
        job_command(folder.write_config(member)),
        log=log,
        folder=log.parent,  # without Python files that could shadow ours
        environment=environment,
    )
    return _Job(member, process, log, time.monotonic())


def _describe_end(job: _Job, status: int, result: ModelResult, failures: dict[str, str]) -> str:
    """Return how a job ended, and add the reason to ``failures`` if it failed."""
    if status == 0 and result.state == FINISHED:
        duration = format_duration(time.monotonic() - job.started)
        return f"finished in {duration} · {summary_line(result)}"
    if status == INTERRUPTED:
        return run_record.INTERRUPTED
    reason = failures[result.label] = _failure(result, job.log, status)
    return f"failed: {reason}"


def _print(console: Console, label: str, text: str) -> None:
    console.print(f"{label}: {text}", soft_wrap=True, markup=False)


def _failure(result: ModelResult, log: Path, status: int) -> str:
    """Return why a model failed: the error of its run, or the last line of its log."""
    if result.state == run_record.FAILED and result.error:
        return result.error
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else f"its process {processes.describe_exit(status)}"


def main(config: str) -> None:
    """Run the pipeline of one configuration up to its evaluation, and exit with its status."""
    from regard.pipeline.cli.app import main as run_command

    processes.end_with_parent()
    sys.argv = ["regard", "run", config, "--to", LAST_NODE, "--wait"]
    run_command()


if __name__ == "__main__":
    main(sys.argv[1])
