"""Trains the models of a comparison: one after another, or several at a time.

Each model is one process that runs ``regard run CONFIG --to Evaluator --wait`` and ends with this
one.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.components.common import run_record
from regard.core import processes
from regard.core.formatting import format_duration
from regard.core.jobs import Job, JobEnd, run_jobs
from regard.core.log_lines import LogLines
from regard.core.processor import count_cores
from regard.pipeline.compare.folder import ComparisonFolder
from regard.pipeline.compare.gather import LAST_NODE, model_result
from regard.pipeline.compare.matrix import Member, ModelComparison
from regard.pipeline.compare.results import FINISHED, ModelResult
from regard.pipeline.compare.table import summary_line
from regard.pipeline.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = 130
_THREAD_VARIABLES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")


@dataclasses.dataclass
class ComparisonOutcome:
    """Whether the user interrupted the comparison, and why models failed, by label."""

    interrupted: bool = False
    failures: dict[str, str] = dataclasses.field(default_factory=dict)


class ModelJob(Job[ModelResult]):
    """The training and the evaluation of one model of a comparison.

    A model that is finished runs as well: its steps are in the cache.

    Args:
        member: the model.
        workspace: contains the pipelines and the folder of the comparison.
        folder: the folder of the comparison.
        environment: the environment of the process.
        on_line: called with each line of the log, also of the nodes' logs; None: not at all.
    """

    def __init__(
        self,
        member: Member,
        workspace: Workspace,
        folder: ComparisonFolder,
        environment: dict[str, str],
        on_line: Callable[[str], None] | None = None,
    ):
        super().__init__(member.label, folder.log(member.label))
        self._member = member
        self._workspace = workspace
        self._folder = folder
        self._environment = environment
        self._on_line = on_line
        self._lines = LogLines(self.log)

    def start(self) -> processes.ChildProcess:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = job_command(self._folder.write_config(self._member))
        return processes.ChildProcess(
            command if self._on_line is None else [*command, "--verbose"],
            log=self.log,
            folder=self.log.parent,  # without Python files that could shadow ours
            environment=self._environment,
        )

    def watch(self) -> None:
        self._report_lines()

    def _report_lines(self, to_end: bool = False) -> None:
        if self._on_line is not None:
            for line in self._lines.new(to_end):
                self._on_line(line)

    def result(self, status: int) -> ModelResult:
        self._report_lines(to_end=True)
        return model_result(self._member, self._workspace)


def job_command(config: Path) -> list[str]:
    """Return the command that trains and evaluates one configuration."""
    command = ["run", str(config), "--to", LAST_NODE, "--wait"]
    return [sys.executable, "-m", "regard.pipeline.cli.child", *command]


def train_models(
    comparison: ModelComparison,
    labels: Sequence[str],
    jobs: int,
    workspace: Workspace,
    console: Console,
    on_end: Callable[[], None],
    verbose: bool = False,
) -> ComparisonOutcome:
    """Train and evaluate models; one that fails does not stop the others.

    The first SIGINT or SIGTERM stops the running models and starts no more; further ones are passed
    on to them.

    Args:
        comparison: all models.
        labels: the models to train.
        jobs: how many to train at a time; they share the cores.
        workspace: contains the pipelines and the folder of the comparison.
        console: where to report starts and ends.
        on_end: called after each model.
        verbose: whether to report the logs of the models, too.
    """
    folder = ComparisonFolder.of(workspace, comparison.name)
    members = [member for member in comparison.members if member.label in labels]
    limit = min(jobs, len(members))
    environment = _environment(workspace, limit)
    outcome = ComparisonOutcome()

    def report_end(end: JobEnd[ModelResult]) -> None:
        _print(console, end.job.name, _describe_end(end, outcome.failures))
        on_end()

    def job(member: Member) -> ModelJob:
        on_line = functools.partial(_print, console, member.label) if verbose else None
        return ModelJob(member, workspace, folder, environment, on_line)

    with processes.collect_stop_signals() as signals:
        outcome.interrupted = run_jobs(
            [job(member) for member in members],
            limit,
            on_start=lambda job: _print(console, job.name, "training …"),
            on_end=report_end,
            signals=signals,
            on_stop=lambda: console.print("Stopping …"),
        )
    return outcome


def _environment(workspace: Workspace, jobs: int) -> dict[str, str]:
    """Return the environment of the jobs, which share the cores unless the user has set threads."""
    environment = processes.child_environment(REGARD_HOME=str(workspace.home))
    if jobs > 1:
        for name in _THREAD_VARIABLES:
            environment.setdefault(name, str(max(1, count_cores() // jobs)))
    return environment


def _describe_end(end: JobEnd[ModelResult], failures: dict[str, str]) -> str:
    """Return how a job ended, and add the reason to ``failures`` if it failed."""
    result = end.result
    if end.status == 0 and result.state == FINISHED:
        return f"finished in {format_duration(end.seconds)} · {summary_line(result)}"
    if end.status == INTERRUPTED:
        return run_record.INTERRUPTED
    recorded = result.error if result.state == run_record.FAILED else None
    reason = failures[result.label] = recorded or end.failure()
    return f"failed: {reason}"


def _print(console: Console, label: str, text: str) -> None:
    console.print(f"{label}: {text}", soft_wrap=True, markup=False)
