"""The run store: one folder a run, with what was asked, what happened and how it ended."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

from components.errors import UserError
from components.files import atomic_write
from pipeline import lock
from pipeline.workspace import PipelinePaths, Workspace

RUNNING, SUCCEEDED, NOT_BLESSED = "running", "succeeded", "not blessed"
FAILED, INTERRUPTED, KILLED = "failed", "interrupted", "killed"


@dataclasses.dataclass(frozen=True)
class Run:
    """The folder of one run."""

    directory: Path

    @property
    def id(self) -> str:
        """The UTC time the run started, such as ``20261120-101643``."""
        return self.directory.name

    @property
    def events(self) -> Path:
        """What the nodes told while they ran, one JSON object a line."""
        return self.directory / "events.jsonl"

    @property
    def log(self) -> Path:
        """The libraries' own output."""
        return self.directory / "log.txt"

    @property
    def config(self) -> Path:
        """The resolved configuration that the run uses."""
        return self.directory / "config.yaml"

    @property
    def record_path(self) -> Path:
        """The record: see :meth:`update`."""
        return self.directory / "run.json"

    def record(self) -> dict[str, Any]:
        """What ``run.json`` holds; empty where it cannot be read."""
        try:
            content = json.loads(self.record_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def update(self, **fields: Any) -> None:
        """Adds fields to ``run.json``, which is whole at every moment."""
        record = {**self.record(), **fields}
        atomic_write(self.record_path, json.dumps(record, ensure_ascii=False, indent=2) + "\n")


def create(paths: PipelinePaths, **fields: Any) -> Run:
    """Makes the folder of a new run and its record, with the status ``running``.

    Raises:
        UserError: the folder cannot be written.
    """
    try:
        run = _make_directory(paths.runs)
        run.update(id=run.id, name=paths.root.name, status=RUNNING, started=time.time(), **fields)
    except OSError as error:
        raise UserError(
            f"the run cannot be recorded: {error.strerror}",
            where=str(paths.runs),
            remedy="Give REGARD_HOME a folder that you may write to and that has free space.",
        ) from error
    return run


def _make_directory(parent: Path) -> Run:
    parent.mkdir(parents=True, exist_ok=True)
    started = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    number = 1
    while True:  # two runs within one second get different folders
        directory = parent / (started if number == 1 else f"{started}-{number}")
        try:
            directory.mkdir()
        except FileExistsError:
            number += 1
        else:
            return Run(directory)


def runs_of(paths: PipelinePaths) -> list[Run]:
    """The runs of one pipeline, oldest first."""
    if not paths.runs.is_dir():
        return []
    return [Run(path) for path in sorted(paths.runs.iterdir()) if (path / "run.json").is_file()]


def listing(workspace: Workspace, name: str | None = None) -> list[dict[str, Any]]:
    """The records of all runs, newest first; a run that was killed is told as such.

    Args:
        workspace: where to look.
        name: only the runs of this pipeline.
    """
    records = []
    for pipeline_name in workspace.pipeline_names():
        if name is not None and pipeline_name != name:
            continue
        paths = workspace.pipeline(pipeline_name)
        for run in runs_of(paths):
            record = {"id": run.id, "name": pipeline_name, **run.record()}
            if record.get("status") == RUNNING and not _is_running(paths, run):
                record["status"] = KILLED
            record["directory"] = str(run.directory)
            records.append(record)
    return sorted(records, key=lambda record: record.get("started", 0.0), reverse=True)


def _is_running(paths: PipelinePaths, run: Run) -> bool:
    return lock.holder(paths.lock).get("run") == run.id and lock.is_held(paths.lock)
