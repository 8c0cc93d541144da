"""The run store: one folder a run, with what was asked, what happened and how it ended."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import time
from pathlib import Path
from typing import Any

from components.errors import UserError
from components.files import atomic_write
from components.registry import Registry, read_record
from pipeline import lock, progress
from pipeline.workspace import PipelinePaths, Workspace

RECORD = "run.json"
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
    def name(self) -> str:
        """The pipeline's name."""
        return self.directory.parents[1].name

    @property
    def full_id(self) -> str:
        """Name and id, ``quickstart/20261120-101643``: no two runs of a workspace share it."""
        return f"{self.name}/{self.id}"

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

    def settings(self) -> dict[str, Any]:
        """The resolved configuration as plain values; empty where it cannot be read."""
        import yaml

        try:
            content = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError):
            return {}
        return content if isinstance(content, dict) else {}

    @property
    def record_path(self) -> Path:
        """The record: see :meth:`update`."""
        return self.directory / RECORD

    def record(self) -> dict[str, Any]:
        """What ``run.json`` holds; empty where it cannot be read."""
        try:
            content = json.loads(self.record_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def nodes(self) -> dict[str, dict[str, Any]]:
        """State, seconds and peak of memory of each node, as far as they are known."""
        nodes = self.record().get("nodes")
        if nodes is None:  # it goes on, or was killed
            return {node.name: node.facts() for node in progress.read(self.events).nodes.values()}
        return {
            # Older runs kept the state alone.
            name: told if isinstance(told, dict) else {"state": told}
            for name, told in nodes.items()
        }

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
    return [Run(path) for path in sorted(paths.runs.iterdir()) if (path / RECORD).is_file()]


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
        for run in runs_of(workspace.pipeline(pipeline_name)):
            record = {"id": run.id, "name": pipeline_name, **run.record()}
            record.update(status=status(run), directory=str(run.directory))
            records.append(record)
    return sorted(records, key=lambda record: record.get("started", 0.0), reverse=True)


def status(run: Run) -> str:
    """How a run ended, or that it goes on; where its process is gone, it was killed."""
    told = str(run.record().get("status", "?"))
    if told != RUNNING:
        return told
    path = PipelinePaths(run.directory.parents[1]).lock
    if lock.holder(path).get("run") == run.id and lock.is_held(path):
        return RUNNING
    # It may have ended since its record was read.
    told = str(run.record().get("status", "?"))
    return KILLED if told == RUNNING else told


def needed_versions(workspace: Workspace, model: Path) -> dict[int, str]:
    """The versions of a model that runs which go on compare with or start from, and why.

    Args:
        workspace: whose runs.
        model: the folder of the model's versions.
    """
    found = {}
    for name in workspace.pipeline_names():
        for run in runs_of(workspace.pipeline(name))[-1:]:  # there is one at a time
            origin = progress.read(run.events).origin if status(run) == RUNNING else {}
            parent = str(origin.get("parent") or "")
            start = Path((origin.get("start") or {}).get("path", ""))
            if start.name.isdecimal() and start.parent.resolve() == model.resolve():
                found[int(start.name)] = f"run {run.full_id} starts from it"
            if name == model.name and parent.isdecimal():
                found[int(parent)] = f"run {run.full_id} compares with it"
    return found


def find(workspace: Workspace, given: str) -> Run:
    """The one run that a user means.

    Args:
        workspace: where to look.
        given: an id or its beginning, ``NAME/ID``, ``NAME`` (its newest run), ``NAME@VERSION``
            (the run that pushed it), or the path of a run's folder.

    Raises:
        UserError: no run fits, or several do; it names them, or what is close.
    """
    folder = Path(os.path.expanduser(given)).absolute()  # Path's own fails for unknown users
    if given and (folder / RECORD).is_file():
        return Run(folder)
    name, at, version = given.partition("@")
    if at:
        return _that_pushed(workspace, name, version)
    name, slash, beginning = given.rpartition("/")
    if not slash and given in workspace.pipeline_names():
        name, beginning = given, ""
    candidates = [run for run in _all(workspace) if (name or beginning) and name in ("", run.name)]
    fitting = [run for run in candidates if run.id.startswith(beginning)]
    if name and not beginning and fitting:
        return fitting[-1]
    fitting = [run for run in fitting if run.id == beginning] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise _no_run(workspace, given)
    raise UserError(
        f"{given!r} may be any of {len(fitting)} runs",
        where=str(workspace.pipelines),
        remedy=f"Give one of them: {_some([run.full_id for run in reversed(fitting)])}.",
    )


def _all(workspace: Workspace) -> list[Run]:
    """The runs of all pipelines; those of one lie together, oldest first."""
    return [run for name in workspace.pipeline_names() for run in runs_of(workspace.pipeline(name))]


def _that_pushed(workspace: Workspace, name: str, version: str) -> Run:
    """The run that pushed a version; later ones may tell of it too, out of the cache."""
    paths = workspace.pipeline(name)
    if name and version:
        told = read_record(Registry(workspace.registry).root / name / version).get("run")
        if told and (paths.runs / told / RECORD).is_file():
            return Run(paths.runs / told)
    telling = [run for run in runs_of(paths) if run.record().get("pushed_version") == version]
    pushers = [run.nodes().get("Pusher", {}) for run in telling]
    pushing = [
        run
        for run, pusher in zip(telling, pushers, strict=True)
        if pusher.get("state") == progress.DONE
    ]
    if not telling:
        raise _no_run(workspace, f"{name}@{version}")
    return (pushing or telling)[0]


def _no_run(workspace: Workspace, given: str) -> UserError:
    known = _all(workspace)
    versions = {
        f"{run.name}@{version}": None for run in known if (version := _version_of(run)) is not None
    }
    names = list(dict.fromkeys(run.name for run in known))
    ids = [text for run in reversed(known) for text in (run.id, run.full_id)]
    close = difflib.get_close_matches(given, [*names, *versions, *ids], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    name = given.partition("@")[0].partition("/")[0]
    own = [run.full_id for run in reversed(known) if run.name == name]
    if own and "@" in given:
        pushed = [text for text in versions if text.startswith(f"{name}@")]
        remedy = f"Pushed by runs here: {_some(pushed)}." if pushed else "No run of it pushed any."
    elif own:
        remedy = f"Its newest runs: {_some(own)}."
    elif names:
        remedy = f"Give a run of `regard runs`, or one of {_some(names)} for its newest."
    else:
        remedy = "No pipeline has run in this workspace yet; REGARD_HOME says which it is."
    return UserError(f"there is no run {given!r}{hint}", str(workspace.pipelines), remedy)


def _version_of(run: Run) -> str | None:
    version = run.record().get("pushed_version")
    return str(version) if version else None


def _some(texts: list[str], most: int = 6) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
