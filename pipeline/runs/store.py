"""The run store: one folder per run with its configuration, events, log and record."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regard.components.common import run_progress
from regard.components.common.run_progress import Progress
from regard.components.common.run_record import CACHED, DONE, KILLED, RUNNING, Node, RunRecord
from regard.components.registry.records import VersionRecord, read_record_or_empty
from regard.components.registry.store import Registry
from regard.core import locks
from regard.core.errors import EnvironmentFault, NotFoundError, UserError
from regard.core.files import read_json_object, remove_temporary_files, write_json
from regard.core.suggestions import did_you_mean
from regard.core.yaml_text import YAMLError, from_yaml
from regard.pipeline.workspace import PipelinePaths, Workspace

RECORD = "run.json"
REPORT = "report.html"


@dataclasses.dataclass
class Run:
    """The folder of one run, ``<workspace>/pipelines/<name>/runs/<id>``."""

    directory: Path

    def __post_init__(self) -> None:
        self.id = self.directory.name  # the UTC start time, such as 20261120-101643
        self.name = self.directory.parents[1].name  # of the pipeline
        self.full_id = f"{self.name}/{self.id}"  # unique in a workspace
        self.events = self.directory / "events.jsonl"  # of the nodes, one JSON object per line
        self.log = self.directory / "log.txt"  # the output of the libraries
        self.config = self.directory / "config.yaml"  # with all defaults and absolute paths

    @property
    def workspace(self) -> Workspace:
        """The workspace that contains the run."""
        return Workspace(self.directory.parents[3])

    @property
    def pushed_model(self) -> Path | None:
        """The folder of the model's versions to which the run published one."""
        if not self.record().pushed_version:
            return None
        pushed = self.progress().pushed_model()
        destination = str(pushed.get("pushed_destination", ""))
        return Path(destination).parent if destination else None

    def settings(self) -> dict[str, Any]:
        """The resolved configuration as plain values; empty if it cannot be read."""
        try:
            content = from_yaml(self.config.read_text(encoding="utf-8"))
        except (OSError, ValueError, YAMLError):
            return {}
        return content if isinstance(content, dict) else {}

    def record(self) -> RunRecord:
        """The record; empty if it cannot be read."""
        return RunRecord.from_dict(read_json_object(self.directory / RECORD))

    def progress(self, nodes: Iterable[str] = ()) -> Progress:
        """The progress by the events; ``nodes`` are listed even without events."""
        return run_progress.read(self.events, nodes)

    def nodes(self) -> dict[str, Node]:
        """The nodes with their state and their cost, as far as they are known."""
        nodes = self.record().nodes
        # Without nodes in its record, the run is in progress, or was killed.
        return self.progress().nodes if nodes is None else nodes

    def update(self, changes: RunRecord) -> None:
        """Write the fields that are set in ``changes`` to the record, atomically."""
        path = self.directory / RECORD
        write_json(path, {**read_json_object(path), **changes.to_dict()})


def create(paths: PipelinePaths, facts: RunRecord | None = None) -> Run:
    """Create the folder of a new run and its record, with the status ``running``.

    Temporary files of killed runs are removed. The caller holds the lock of the pipeline.

    Args:
        paths: The folders of the pipeline.
        facts: Further fields of the record.

    Raises:
        UserError: The folder is not writable.
    """
    try:
        remove_temporary_files(paths.root)
        for folder in paths.runs.iterdir() if paths.runs.is_dir() else ():
            remove_temporary_files(folder)
        run = _create_directory(paths.runs)
        start = RunRecord(id=run.id, name=run.name, status=RUNNING, started=time.time())
        run.update(start if facts is None else start.with_changes(facts))
    except OSError as error:
        message = f"Cannot create the record of the run: {error.strerror}."
        remedy = "Set REGARD_HOME to a writable folder with free disk space."
        raise EnvironmentFault(message, str(paths.runs), remedy) from error
    return run


def _create_directory(parent: Path) -> Run:
    parent.mkdir(parents=True, exist_ok=True)
    started = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    # Runs of the same second get different folders, whose names sort by time, also if an earlier
    # one was removed.
    numbers = [int(path.name[len(started) + 1 :] or 1) for path in parent.glob(f"{started}*")]
    number = max(numbers, default=0) + 1
    directory = parent / (started if number == 1 else f"{started}-{number:02}")
    directory.mkdir()
    return Run(directory)


def runs_of(paths: PipelinePaths) -> list[Run]:
    """The runs of one pipeline, oldest first."""
    if not paths.runs.is_dir():
        return []
    return [Run(path) for path in sorted(paths.runs.iterdir()) if (path / RECORD).is_file()]


def original_nodes(run: Run, nodes: Mapping[str, Node]) -> dict[str, tuple[Run, Node]]:
    """Return the run that made the outputs of each node; without those of removed runs.

    Args:
        run: a run.
        nodes: its nodes by name, some of which may be cached.
    """
    originals = {name: (run, node) for name, node in nodes.items()}
    cached = [name for name, node in nodes.items() if node.state == CACHED]
    for directory in sorted(run.directory.parent.iterdir(), reverse=True) if cached else ():
        other = Run(directory)
        others = other.progress().nodes
        for name in [name for name in cached if name in others]:
            node = others[name]
            if node.state == DONE and node.outputs == nodes[name].outputs:
                originals[name] = other, node
                cached.remove(name)
        if not cached:
            break
    return {name: original for name, original in originals.items() if name not in cached}


def listing(workspace: Workspace, name: str | None = None) -> list[RunRecord]:
    """The records of all runs, newest first, with their actual status.

    Args:
        workspace: The workspace.
        name: Only the runs of this pipeline.
    """
    records: list[RunRecord] = []
    for pipeline_name in workspace.pipeline_names() if name is None else [name]:
        for run in runs_of(workspace.pipeline(pipeline_name)):
            record = run.record()
            actual = {
                "id": record.id or run.id,
                "name": record.name or pipeline_name,
                "status": status(run),
                "directory": str(run.directory),
            }
            records.append(record.model_copy(update=actual))
    return sorted(records, key=lambda record: record.started or 0.0, reverse=True)


def status(run: Run) -> str:
    """The status of a run; a run whose process has disappeared was killed."""
    recorded = run.record().status or "?"
    if recorded != RUNNING:
        return recorded
    path = run.workspace.pipeline(run.name).lock
    if locks.read_holder(path).get("run") == run.id and locks.is_locked(path):
        return RUNNING
    # It may have ended after its record was read.
    recorded = run.record().status or "?"
    return KILLED if recorded == RUNNING else recorded


def needed_versions(workspace: Workspace, model: Path) -> dict[int, str]:
    """The versions of a model that running pipelines use, with the reason.

    Args:
        workspace: The workspace of the pipelines.
        model: The folder of the model's versions.
    """
    reasons = {}
    for name in workspace.pipeline_names():
        # Not only the newest by its id: the clock may have been set back.
        for run in runs_of(workspace.pipeline(name)):
            if status(run) != RUNNING:
                continue
            origin = run.progress().origin
            parent = origin.parent or ""
            for used in (origin.start or {}, *origin.ensemble, *origin.augmentation):
                path = Path(used.get("path", ""))
                if path.name.isdecimal() and path.parent.resolve() == model.resolve():
                    reasons[int(path.name)] = f"run {run.full_id} uses it"
            if name == model.name and parent.isdecimal():
                reasons[int(parent)] = f"run {run.full_id} compares with it"
    return reasons


def find(workspace: Workspace, text: str) -> Run:
    """Find the run that a user refers to.

    Args:
        workspace: The workspace.
        text: An id, ``NAME/ID``, ``NAME`` (its newest run), or ``NAME@VERSION`` (the run that
            pushed it).

    Raises:
        UserError: No run matches, or several do.
    """
    name, at, version = text.partition("@")
    if at:
        matches = _find_pushing_runs(workspace, name, version)[:1]
    elif text in workspace.pipeline_names():
        matches = runs_of(workspace.pipeline(text))[-1:]
    else:
        matches = [run for run in _all_runs(workspace) if text in (run.id, run.full_id)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        remedy = f"Use one of: {', '.join(run.full_id for run in matches)}."
        raise UserError(f"{text!r} matches {len(matches)} runs.", str(workspace.pipelines), remedy)
    if at and _record(workspace, name, version).imported.format:
        raise UserError(
            f"{text} was imported, so no run has trained it.",
            str(workspace.pipelines),
            f"`regard lineage {text}` shows where it comes from; `regard evaluate {text} --data "
            "FILE --out DIR` writes a report of its outputs.",
        )
    names: list[str] = []
    for run in _all_runs(workspace):
        names += (run.name, run.id, run.full_id)
    remedy = "`regard runs` lists the runs of the workspace, which REGARD_HOME selects."
    hint = did_you_mean(text, names)
    raise NotFoundError(f"Unknown run {text!r}.", str(workspace.pipelines), f"{hint}{remedy}")


def _all_runs(workspace: Workspace) -> list[Run]:
    """The runs of all pipelines, by pipeline, oldest first."""
    runs: list[Run] = []
    for name in workspace.pipeline_names():
        runs += runs_of(workspace.pipeline(name))
    return runs


def _record(workspace: Workspace, name: str, version: str) -> VersionRecord:
    """Return the record of a version; an empty one without it."""
    return read_record_or_empty(Registry(workspace.registry).root / name / version)


def _find_pushing_runs(workspace: Workspace, name: str, version: str) -> list[Run]:
    """The runs that pushed a version, then those that record it with a cached Pusher."""
    runs = runs_of(workspace.pipeline(name))
    run_id = _record(workspace, name, version).run
    recorded = [run for run in runs if run.id == run_id]
    return recorded + [run for run in runs if run.record().pushed_version == version]
