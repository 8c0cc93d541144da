"""The run store: one folder per run with its configuration, events, log and record."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import JsonValue

from regard.components.registry.records import read_record_or_empty
from regard.components.registry.store import Registry
from regard.core import locks
from regard.core.errors import UserError
from regard.core.events import Failure, Origin
from regard.core.files import read_json_object, remove_temporary_files, write_json
from regard.core.suggestions import did_you_mean
from regard.core.yaml_text import YAMLError, from_yaml
from regard.pipeline import progress
from regard.pipeline.progress import NodeProgress, RecordedNode
from regard.pipeline.workspace import PipelinePaths, Workspace

if TYPE_CHECKING:
    from typing_extensions import Unpack

RECORD = "run.json"
REPORT = "report.html"
RUNNING, SUCCEEDED, NOT_BLESSED = "running", "succeeded", "not blessed"
FAILED, INTERRUPTED, KILLED = "failed", "interrupted", "killed"


class RunRecord(Origin, total=False):
    """The content of ``run.json``.

    ``data`` has the rows per split, the findings of the data checks, and the spans (``name``,
    ``version``, ``rows`` per split, whether it is ``replayed``, and the rows ``available`` for
    that). ``scores`` has the fields of ``MetricResult`` for each metric; ``value`` is None if it is
    undefined, and ``baselines`` are the labels and values of trivial systems.
    ``metadata`` is the state of ML Metadata's file after the run. A run without executions of its
    own has the id of the run whose executions are its own in ``executions_of``.
    """

    id: str
    name: str
    status: str
    started: float
    ended: float
    seconds: float
    config: str
    digest: str
    runner: str
    first: str | None
    last: str | None
    publish_anyway: bool
    pid: int
    seed: int
    regard: dict[str, str]
    stack: dict[str, str]
    machine: dict[str, JsonValue]
    command: str
    failure: Failure | None
    nodes: dict[str, RecordedNode]
    data: dict[str, Any]
    scores: list[dict[str, Any]]
    blessed: bool | None
    reason: str | None
    pushed_version: str | None
    directory: str
    metadata: list[int]
    executions_of: str


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
        if not self.record().get("pushed_version"):
            return None
        pushed = progress.read(self.events).pushed_model()
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
        return cast(RunRecord, read_json_object(self.directory / RECORD))

    def nodes(self) -> dict[str, RecordedNode]:
        """State, seconds and peak memory of each node, as far as they are known."""
        nodes = self.record().get("nodes")
        if nodes is None:  # the run is in progress, or was killed
            return {node.name: node.facts() for node in progress.read(self.events).nodes.values()}
        return nodes

    def update(self, **fields: Unpack[RunRecord]) -> None:
        """Update fields of the record, atomically."""
        write_json(self.directory / RECORD, {**self.record(), **fields})


def create(paths: PipelinePaths, **fields: Unpack[RunRecord]) -> Run:
    """Create the folder of a new run and its record, with the status ``running``.

    Temporary files of killed runs are removed. The caller holds the lock of the pipeline.

    Raises:
        UserError: The folder is not writable.
    """
    try:
        for folder in (paths.root, *(paths.runs.iterdir() if paths.runs.is_dir() else ())):
            remove_temporary_files(folder)
        run = _create_directory(paths.runs)
        start: RunRecord = {"status": RUNNING, "started": time.time(), **fields}
        start |= {"id": run.id, "name": run.name}
        run.update(**start)
    except OSError as error:
        message = f"Cannot create the record of the run: {error.strerror}."
        remedy = "Set REGARD_HOME to a writable folder with free disk space."
        raise UserError(message, str(paths.runs), remedy) from error
    return run


def _create_directory(parent: Path) -> Run:
    parent.mkdir(parents=True, exist_ok=True)
    started = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    number, directory = 1, parent / started
    while directory.exists():  # two runs of the same second get different folders
        number += 1
        directory = parent / f"{started}-{number:02}"  # names sort by time
    directory.mkdir()
    return Run(directory)


def runs_of(paths: PipelinePaths) -> list[Run]:
    """The runs of one pipeline, oldest first."""
    if not paths.runs.is_dir():
        return []
    return [Run(path) for path in sorted(paths.runs.iterdir()) if (path / RECORD).is_file()]


def original_nodes(
    run: Run, nodes: Mapping[str, NodeProgress]
) -> dict[str, tuple[Run, NodeProgress]]:
    """Return the run that made the outputs of each node; without those of removed runs.

    Args:
        run: a run.
        nodes: its nodes by name, some of which may be cached.
    """
    originals = {name: (run, node) for name, node in nodes.items()}
    cached = [name for name, node in nodes.items() if node.state == progress.CACHED]
    for directory in sorted(run.directory.parent.iterdir(), reverse=True) if cached else ():
        other = Run(directory)
        others = progress.read(other.events).nodes
        for name in [name for name in cached if name in others]:
            node = others[name]
            if node.state == progress.DONE and node.outputs == nodes[name].outputs:
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
            record: RunRecord = {"id": run.id, "name": pipeline_name, **run.record()}
            records.append({**record, "status": status(run), "directory": str(run.directory)})
    return sorted(records, key=lambda record: record.get("started", 0.0), reverse=True)


def status(run: Run) -> str:
    """The status of a run; a run whose process has disappeared was killed."""
    recorded = str(run.record().get("status", "?"))
    if recorded != RUNNING:
        return recorded
    path = run.workspace.pipeline(run.name).lock
    if locks.read_holder(path).get("run") == run.id and locks.is_locked(path):
        return RUNNING
    # It may have ended after its record was read.
    recorded = str(run.record().get("status", "?"))
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
            origin = progress.read(run.events).origin
            parent = str(origin.get("parent") or "")
            models = (*origin.get("ensemble", []), *origin.get("augmentation", []))
            for used in filter(None, (origin.get("start"), *models)):
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
    names = [name for run in _all_runs(workspace) for name in (run.name, run.id, run.full_id)]
    remedy = "`regard runs` lists the runs of the workspace, which REGARD_HOME selects."
    hint = did_you_mean(text, names)
    raise UserError(f"Unknown run {text!r}.", str(workspace.pipelines), f"{hint}{remedy}")


def _all_runs(workspace: Workspace) -> list[Run]:
    """The runs of all pipelines, by pipeline, oldest first."""
    return [run for name in workspace.pipeline_names() for run in runs_of(workspace.pipeline(name))]


def _find_pushing_runs(workspace: Workspace, name: str, version: str) -> list[Run]:
    """The runs that pushed a version, then those that record it with a cached Pusher."""
    runs = runs_of(workspace.pipeline(name))
    run_id = read_record_or_empty(Registry(workspace.registry).root / name / version).run
    recorded = [run for run in runs if run.id == run_id]
    return recorded + [run for run in runs if run.record().get("pushed_version") == version]
