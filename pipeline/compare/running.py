"""Runs what is left of a comparison, and writes its results after each model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline import progress, runs
from pipeline.compare import report, results, side_by_side, table
from pipeline.compare.board import Board
from pipeline.compare.members import Comparison, Member
from pipeline.compare.report import Folder
from pipeline.compare.results import FINISHED
from pipeline.compare.side_by_side import INTERRUPTED, Job
from pipeline.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import Console


@dataclasses.dataclass(frozen=True)
class Request:
    """What the user asks for: which labels, how many at once, and the command for the table."""

    labels: Sequence[str]
    at_once: int
    keep: bool
    command: str


@dataclasses.dataclass
class Outcome:
    """How it went: whether nobody interrupted it, and why models failed, by label."""

    undisturbed: bool = True
    failures: dict[str, str] = dataclasses.field(default_factory=dict)


def run(
    comparison: Comparison, request: Request, workspace: Workspace, console: Console
) -> Outcome:
    """Runs the chosen models, those that are finished too: the cache then gives their results.

    Args:
        comparison: all models.
        request: which of them, and how.
        workspace: holds their pipelines, and the comparison's folder.
        console: where to show how it goes.
    """
    folder = Folder.of(workspace, comparison.name)
    members = {m.label: m for m in comparison.members if m.label in request.labels}
    outcome = Outcome()
    board = Board(console, list(members))
    with board.open():
        jobs = []
        for label, member in members.items():
            if request.keep and results.is_finished(member, workspace):
                board.ended(label, progress.CACHED, table.brief(results.look(member, workspace)))
            else:
                jobs.append(_job(member, folder, workspace))

        def ended(job: Job, status: int) -> None:
            entry = results.look(members[job.label], workspace)
            if status == 0 and entry["state"] == FINISHED:
                board.ended(job.label, progress.DONE, table.brief(entry))
            elif status == INTERRUPTED:
                board.ended(job.label, progress.STOPPED, runs.INTERRUPTED)
            else:
                reason = _reason(entry, job, status)
                outcome.failures[job.label] = reason
                board.ended(job.label, progress.FAILED, reason)
            try:
                report.write(results.gather(comparison, workspace), folder, request.command)
            # What is wrong with a picture must not stop the hours of training that follow; the
            # last writing, when all has run, raises it.
            except Exception as error:
                board.say(f"the table could not be written: {type(error).__name__}: {error}")

        at_once = max(1, min(request.at_once, len(jobs)))
        environment = side_by_side.job_environment(workspace, at_once)
        outcome.undisturbed = side_by_side.run_all(jobs, at_once, board, ended, environment)
    return outcome


def _job(member: Member, folder: Folder, workspace: Workspace) -> Job:
    command = side_by_side.job_command(folder.write_config(member))
    paths = workspace.pipeline(member.config.name)
    return Job(member.label, paths, command, folder.log(member.label))


def _reason(entry: dict[str, Any], job: Job, status: int) -> str:
    """Why a model failed: what its run recorded, else the last words of its process."""
    if entry["state"] == runs.FAILED and entry.get("detail"):
        return str(entry["detail"])
    try:
        lines = job.log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        lines = []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return last or f"its process ended with status {status}"
