"""The run store: one folder per run with its configuration, events, log and record."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from regard.components.common.errors import UserError
from regard.components.common.files import atomic_write
from regard.components.common.yaml_text import YAMLError, from_yaml
from regard.components.registry import Registry, read_record
from regard.models.suggestions import did_you_mean
from regard.pipeline import progress
from regard.pipeline.progress import Failure, NodeFacts, Origin
from regard.pipeline.workspace import PipelinePaths, Workspace
from regard.serving import locks

if TYPE_CHECKING:
    from typing_extensions import Unpack

RECORD = "run.json"
RUNNING, SUCCEEDED, NOT_BLESSED = "running", "succeeded", "not blessed"
FAILED, INTERRUPTED, KILLED = "failed", "interrupted", "killed"


class Interval(TypedDict):
    """A confidence interval."""

    low: float
    high: float


class Baseline(TypedDict):
    """The value of a metric for a trivial system."""

    label: str
    value: float | None


class Score(TypedDict, total=False):
    """One metric of a run; ``value`` is None where the metric is undefined."""

    name: str
    label: str
    value: float | None
    scale: float
    signature: str
    interval: Interval
    higher_is_better: bool
    baseline: Baseline


class SpanSummary(TypedDict, total=False):
    """One span of the data: its rows per split, and how many were available for replay."""

    span: int
    name: str
    version: int | None
    rows: dict[str, int]
    replayed: bool
    available: int


class DataSummary(TypedDict, total=False):
    """Rows per split, findings of the data checks, and spans."""

    rows: dict[str, int]
    findings: list[str]
    spans: list[SpanSummary]


class RunRecord(Origin, total=False):
    """The content of ``run.json``."""

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
    pid: int
    seed: int
    regard: dict[str, str]
    stack: dict[str, str]
    machine: dict[str, Any]
    command: str
    failure: Failure | None
    nodes: dict[str, NodeFacts]
    data: DataSummary
    scores: list[Score]
    blessed: bool | None
    reason: str | None
    pushed_version: str | None
    side_by_side: int
    directory: str


@dataclasses.dataclass(frozen=True)
class Run:
    """The folder of one run."""

    directory: Path

    @property
    def id(self) -> str:
        """The UTC start time, such as ``20261120-101643``."""
        return self.directory.name

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        return self.directory.parents[1].name

    @property
    def full_id(self) -> str:
        """Name and id, ``quickstart/20261120-101643``, unique in a workspace."""
        return f"{self.name}/{self.id}"

    @property
    def events(self) -> Path:
        """The events of the nodes, one JSON object per line."""
        return self.directory / "events.jsonl"

    @property
    def log(self) -> Path:
        """The output of the libraries."""
        return self.directory / "log.txt"

    @property
    def config(self) -> Path:
        """The resolved configuration of the run."""
        return self.directory / "config.yaml"

    def settings(self) -> dict[str, Any]:
        """The resolved configuration as plain values; empty if it cannot be read."""
        try:
            content = from_yaml(self.config.read_text(encoding="utf-8"))
        except (OSError, ValueError, YAMLError):
            return {}
        return content if isinstance(content, dict) else {}

    @property
    def record_path(self) -> Path:
        """The file of the record."""
        return self.directory / RECORD

    def record(self) -> RunRecord:
        """The record; empty if it cannot be read."""
        try:
            content = json.loads(self.record_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return cast(RunRecord, content) if isinstance(content, dict) else {}

    def nodes(self) -> dict[str, NodeFacts]:
        """State, seconds and peak memory of each node, as far as they are known."""
        nodes = self.record().get("nodes")
        if nodes is None:  # the run is in progress, or was killed
            return {node.name: node.facts() for node in progress.read(self.events).nodes.values()}
        return nodes

    def update(self, **fields: Unpack[RunRecord]) -> None:
        """Update fields of the record, atomically."""
        self.write({**self.record(), **fields})

    def write(self, record: RunRecord) -> None:
        """Write the record, atomically."""
        atomic_write(self.record_path, json.dumps(record, ensure_ascii=False, indent=2) + "\n")


def create(paths: PipelinePaths, **fields: Unpack[RunRecord]) -> Run:
    """Create the folder of a new run and its record, with the status ``running``.

    Raises:
        UserError: The folder is not writable.
    """
    try:
        run = _create_directory(paths.runs)
        record: RunRecord = {
            "id": run.id,
            "name": paths.root.name,
            "status": RUNNING,
            "started": time.time(),
            **fields,
        }
        run.write(record)
    except OSError as error:
        raise UserError(
            f"Cannot create the record of the run: {error.strerror}",
            where=str(paths.runs),
            remedy="Set REGARD_HOME to a writable folder with free disk space.",
        ) from error
    return run


def _create_directory(parent: Path) -> Run:
    parent.mkdir(parents=True, exist_ok=True)
    started = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    number = 1
    while True:  # two runs of the same second get different folders
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
    return [Run(path) for path in sorted(paths.runs.iterdir()) if (path / RECORD).is_file()]


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
    path = PipelinePaths(run.directory.parents[1]).lock
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
        for run in runs_of(workspace.pipeline(name))[-1:]:  # only the newest can be running
            origin = progress.read(run.events).origin if status(run) == RUNNING else {}
            parent = str(origin.get("parent") or "")
            start = Path((origin.get("start") or {}).get("path", ""))
            if start.name.isdecimal() and start.parent.resolve() == model.resolve():
                reasons[int(start.name)] = f"run {run.full_id} starts from it"
            if name == model.name and parent.isdecimal():
                reasons[int(parent)] = f"run {run.full_id} compares with it"
    return reasons


def find(workspace: Workspace, text: str) -> Run:
    """Find the run that a user refers to.

    Args:
        workspace: The workspace.
        text: An id or a unique prefix of one, ``NAME/ID``, ``NAME`` (its newest run),
            ``NAME@VERSION`` (the run that pushed it), or the path of a run's folder.

    Raises:
        UserError: No run matches, or several do.
    """
    folder = Path(os.path.expanduser(text)).absolute()  # Path's own fails for unknown users
    if text and (folder / RECORD).is_file():
        return Run(folder)
    name, at, version = text.partition("@")
    if at:
        return _find_pushing_run(workspace, name, version)
    name, slash, prefix = text.rpartition("/")
    if not slash and text in workspace.pipeline_names():
        name, prefix = text, ""
    candidates = [
        run for run in _all_runs(workspace) if (name or prefix) and name in ("", run.name)
    ]
    matches = [run for run in candidates if run.id.startswith(prefix)]
    if name and not prefix and matches:
        return matches[-1]
    matches = [run for run in matches if run.id == prefix] or matches
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise _unknown_run(workspace, text)
    raise UserError(
        f"{text!r} matches {len(matches)} runs",
        where=str(workspace.pipelines),
        remedy=f"Use one of: {_first([run.full_id for run in reversed(matches)])}.",
    )


def _all_runs(workspace: Workspace) -> list[Run]:
    """The runs of all pipelines, by pipeline, oldest first."""
    return [run for name in workspace.pipeline_names() for run in runs_of(workspace.pipeline(name))]


def _find_pushing_run(workspace: Workspace, name: str, version: str) -> Run:
    """The run that pushed a version; later runs may record it, too, with a cached Pusher."""
    paths = workspace.pipeline(name)
    if name and version:
        run_id = read_record(Registry(workspace.registry).root / name / version).run
        if run_id and (paths.runs / run_id / RECORD).is_file():
            return Run(paths.runs / run_id)
    matches = [run for run in runs_of(paths) if run.record().get("pushed_version") == version]
    if not matches:
        raise _unknown_run(workspace, f"{name}@{version}")
    for run in matches:
        if run.nodes().get("Pusher", {}).get("state") == progress.DONE:
            return run
    return matches[0]


def _unknown_run(workspace: Workspace, text: str) -> UserError:
    runs = list(reversed(_all_runs(workspace)))
    names = sorted({run.name for run in runs})
    versions = {run: run.record().get("pushed_version") for run in runs}
    pushed = sorted({f"{run.name}@{version}" for run, version in versions.items() if version})
    ids = [run_id for run in runs for run_id in (run.id, run.full_id)]
    name = text.partition("@")[0].partition("/")[0]
    own = [run.full_id for run in runs if run.name == name]
    if own and "@" in text:
        own_versions = [version for version in pushed if version.startswith(f"{name}@")]
        remedy = f"Versions pushed by its runs: {_first(own_versions) or 'none'}."
    elif own:
        remedy = f"Its newest runs: {_first(own)}."
    elif names:
        remedy = f"Use a run listed by `regard runs`, or one of {_first(names)} for its newest run."
    else:
        remedy = "This workspace contains no runs. REGARD_HOME selects the workspace."
    hint = did_you_mean(text, [*names, *pushed, *ids])
    return UserError(f"Unknown run {text!r}", str(workspace.pipelines), hint + remedy)


def _first(texts: list[str], count: int = 6) -> str:
    more = f" and {len(texts) - count} more" if len(texts) > count else ""
    return ", ".join(texts[:count]) + more
