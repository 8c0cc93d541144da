"""Traces a version of the registry to its run, its data and the versions before it."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from regard.components.data.fingerprints import fingerprint
from regard.components.data.sources import find_files
from regard.components.registry.records import RECORD, RecordedSpan, VersionRecord, read_record
from regard.components.registry.store import Registry
from regard.core.errors import UserError
from regard.pipeline.config import config_from_values
from regard.pipeline.context import resolve_data
from regard.pipeline.lineage.config_changes import ConfigChange, config_changes
from regard.pipeline.lineage.executions import NodeExecution, trace_executions
from regard.pipeline.lineage.failed_runs import FailedRun, failed_runs_between
from regard.pipeline.runs.store import Run
from regard.pipeline.workspace import PipelinePaths, Workspace

# The fields of a version's record that the JSON form repeats.
_RECORD_FIELDS = (
    "created",
    "digest",
    "blessing",
    "metrics",
    "regard",
    "stack",
    "data_fingerprint",
    "config",
    "rollback_of",
    "rolled_back_from",
    "reason",
    "warm_start",
    "imported",
)
_RUN_FIELDS = ("started", "seconds", "command", "machine", "config")
UNCHANGED, CHANGED, MISSING, UNKNOWN = "unchanged", "changed", "missing", "unknown"


class Parent(TypedDict, total=False):
    """A version that its successor was compared with.

    Attributes:
        model: ``NAME@VERSION``; nothing else is known of a version that was removed.
        created: its publication.
        run: the id of the run that pushed it.
        metrics: its metrics on the test split.
        started_from: the model that its training started from.
        changes: the configuration keys that differ: ``a`` here, ``b`` in the successor.
        same_data: whether the successor has the same data.
        span_changes: spans that only the successor has (``new``), that only the parent has
            (``removed``), of another ``version``, and that only the successor replays
            (``replayed``).
        failed_before: runs before it that pushed nothing.
    """

    model: str
    created: str
    run: str
    metrics: dict[str, dict[str, Any]]
    started_from: str | None
    changes: list[ConfigChange]
    same_data: bool
    span_changes: dict[str, list[str]]
    failed_before: list[FailedRun]


@dataclasses.dataclass(frozen=True)
class Lineage:
    """Where a version came from.

    Attributes:
        model: ``NAME@VERSION``.
        record: the version's record.
        path: its folder.
        seed: the seed of the training.
        run: the id and the facts of the run that pushed it, with the id of its ``context`` in ML
            Metadata.
        nodes: the executions from the Pusher back to the data.
        data: the data.
        failed_before: runs between its parent and it that pushed nothing; see
            ``failed_runs_between``.
        failed_since: such runs between it and the next version.
        parents: the versions that it and its predecessors were compared with, back to the first.
        missing: what could not be found, in sentences.
    """

    model: str
    record: VersionRecord
    path: str
    seed: int | None
    run: dict[str, Any]
    nodes: list[NodeExecution]
    data: DataLineage
    failed_before: list[FailedRun]
    failed_since: list[FailedRun]
    parents: list[Parent]
    missing: list[str]

    def to_dict(self) -> dict[str, object]:
        """Return the lineage as JSON values."""
        values, record = dataclasses.asdict(self), self.record.to_dict()
        del values["record"]
        return {**{key: record[key] for key in _RECORD_FIELDS if key in record}, **values}


def trace(version: Path, workspace: Workspace) -> Lineage:
    """Trace a version of the registry.

    Args:
        version: its folder.
        workspace: the workspace in which its pipeline ran, if it is on this machine.

    Raises:
        UserError: the folder is not a pushed version.
    """
    record = read_record(version)
    if not record.name or not record.version:
        message = f"There is no {RECORD} with a name and a version, so the lineage is unknown."
        remedy = "Give NAME or NAME@VERSION of the registry; the Pusher writes the file."
        raise UserError(message, str(version), remedy)
    return _Tracer(version, record, workspace).trace()


class _Tracer:
    """Collects the lineage of one version, and sentences about what is missing."""

    def __init__(self, version: Path, record: VersionRecord, workspace: Workspace):
        self.version, self.record = version, record
        self.paths = workspace.pipeline(record.name)
        registry, name = Registry(version.parent.parent), version.parent.name
        self.records = {number: registry.record(name, number) for number in registry.versions(name)}
        self.missing: list[str] = []
        self.contexts: dict[str, int] = {}  # of ML Metadata, by the ids of runs

    def trace(self) -> Lineage:
        record = self.record
        if record.imported.format:  # it has neither a run nor data
            return self._trace_imported()
        nodes, self.contexts = trace_executions(Run(self.paths.runs / record.run), self.missing)
        later = [self.records[number] for number in self.records if number > record.version]
        following = later[0] if later else None
        return Lineage(
            model=f"{record.name}@{record.version}",
            record=record,
            path=str(self.version),
            seed=record.config.get("training", {}).get("seed"),
            run=self._run(record.run),
            nodes=nodes,
            data=trace_data(self.paths, record, nodes, self.missing),
            failed_before=self._failed_before(record),
            failed_since=self._failed_between(record, following),
            parents=self._parents(),
            missing=self.missing,
        )

    def _trace_imported(self) -> Lineage:
        return Lineage(
            model=f"{self.record.name}@{self.record.version}",
            record=self.record,
            path=str(self.version),
            seed=None,
            run={},
            nodes=[],
            data=DataLineage("", UNKNOWN, [], {}, []),
            failed_before=[],
            failed_since=[],
            parents=self._parents(),
            missing=[],
        )

    def _run(self, run_id: str) -> dict[str, Any]:
        """Return the facts of a run's record; only the id if its folder is gone."""
        if not run_id:
            self.missing.append("Run: the version does not name it.")
            return {}
        run = Run(self.paths.runs / run_id)
        record = run.record().to_dict()
        if not record:
            self.missing.append(f"Run: there is no record at {run.directory}.")
            return {"id": run_id}
        facts = {key: value for key, value in record.items() if key in _RUN_FIELDS}
        if run_id in self.contexts:
            facts["context"] = self.contexts[run_id]
        return {"id": run_id, **facts, "directory": str(run.directory)}

    def _failed_before(self, record: VersionRecord) -> list[FailedRun]:
        """Return the runs without a version between a version's parent and its first push.

        If the parent is gone, since the newest older version.
        """
        original = self.records.get(record.rollback_of or 0, record)
        parent = self._parent_record(record)
        if parent is None and record.compared_with:
            older = [number for number in self.records if number < original.version]
            parent = self.records[older[-1]] if older else None
        return self._failed_between(parent, original)

    def _failed_between(
        self, first: VersionRecord | None, last: VersionRecord | None
    ) -> list[FailedRun]:
        after = first.created if first else None
        before = last.created if last else None
        pushing = {record.run for record in self.records.values()}
        return failed_runs_between(self.paths, after, before, pushing)

    def _parent_record(self, record: VersionRecord) -> VersionRecord | None:
        """Return the record of the version that one was compared with; None if it is gone."""
        number = str(record.compared_with or "")
        return self.records.get(int(number)) if number.isdecimal() else None

    def _parents(self) -> list[Parent]:
        """Return the versions that were in production before, newest first."""
        parents: list[Parent] = []
        child = self.record
        # The number of a removed version may be used again, so the parents may form a cycle.
        numbers = set[str]()
        while (number := str(child.compared_with or "")) and number not in numbers:
            numbers.add(number)
            parent, model = self._parent_record(child), f"{self.record.name}@{number}"
            if parent is None:
                parents.append({"model": model})
                self.missing.append(f"Versions before {model}: it is not in the registry any more.")
                break
            parents.append(
                {
                    "model": model,
                    "created": parent.created,
                    "run": parent.run,
                    "metrics": {name: score.to_dict() for name, score in parent.metrics.items()},
                    "started_from": parent.warm_start.start.get("model"),
                    "changes": config_changes(parent.config, child.config),
                    "same_data": parent.data_fingerprint == child.data_fingerprint,
                    "span_changes": _span_changes(parent.spans, child.spans),
                    "failed_before": self._failed_before(parent),
                }
            )
            child = parent
        return parents


def _span_changes(
    before: Sequence[RecordedSpan], after: Sequence[RecordedSpan]
) -> dict[str, list[str]]:
    old = {span.name: span for span in before}
    new = {span.name: span for span in after}
    shared = [(old[name], span) for name, span in new.items() if name in old]
    return {
        "new": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "version": [b.name for a, b in shared if a.version != b.version],
        "replayed": [b.name for a, b in shared if b.replayed and not a.replayed],
    }


class DataSource(TypedDict, total=False):
    """Files that are read together, and the rows of each split that they gave."""

    files: list[str]
    rows: dict[str, int]


@dataclasses.dataclass(frozen=True)
class DataLineage:
    """The data of a version.

    Attributes:
        fingerprint: the digest of the data; empty if it is not known.
        state: ``unchanged``, ``changed``, ``missing`` or ``unknown``.
        sources: the files.
        rows: the rows of each split.
        spans: the spans, as CorpusGen writes them.
    """

    fingerprint: str
    state: str
    sources: list[DataSource]
    rows: dict[str, int] = dataclasses.field(default_factory=dict)
    spans: list[dict[str, Any]] = dataclasses.field(default_factory=list)


def trace_data(
    paths: PipelinePaths, record: VersionRecord, nodes: Sequence[NodeExecution], missing: list[str]
) -> DataLineage:
    """Return the data files of a version with their rows and their state.

    Args:
        paths: the folders of the pipeline.
        record: the version's record.
        nodes: the executions behind it.
        missing: is extended by a sentence on everything that cannot be found.
    """
    corpus = _read_corpus(nodes, missing)
    state, files = _data_state(paths, record, missing)
    content = corpus or record.to_dict()
    sources: list[DataSource] = []
    if corpus:
        sources = corpus["files"]
    elif files:  # without the rows of each source, the files that the configuration names
        sources = [{"files": files}]
    rows, spans = content.get("rows", {}), content.get("spans", [])
    return DataLineage(record.data_fingerprint, state, sources, rows, spans)


def _read_corpus(nodes: Sequence[NodeExecution], missing: list[str]) -> dict[str, Any]:
    """Return the content of CorpusGen's ``corpus.json``; empty if it is not known."""
    path = _find_corpus_file(nodes)
    if path is None:
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        missing.append(f"Rows of each data file: {path} is missing.")
        return {}


def _find_corpus_file(nodes: Sequence[NodeExecution]) -> Path | None:
    """Return the path of CorpusGen's ``corpus.json``; None without that node or its output."""
    for node in nodes:
        if node.node == "CorpusGen":
            for output in node.outputs:
                if output.key == "findings":
                    return Path(output.uri) / "corpus.json"
    return None


def _data_state(
    paths: PipelinePaths, record: VersionRecord, missing: list[str]
) -> tuple[str, list[str]]:
    """Return the state of the data, and the files of the spans that the version was trained on."""
    try:
        spans = record.to_dict().get("spans")
        corpus = resolve_data(config_from_values(record.config), spans=spans)
    except UserError as error:
        missing.append(f"State of the data: {error.where}: {error.message}.")
        return MISSING, []
    except (ValueError, KeyError, TypeError):
        missing.append("State of the data: another version of Regard made the model.")
        return UNKNOWN, []
    except LookupError as error:
        missing.append(f"State of the data: {error}.")
        return UNKNOWN, []
    files: list[str] = []
    for groups in find_files(corpus).values():
        for group in groups:
            files += group.files
    with tempfile.TemporaryDirectory() as folder:  # the workspace is not modified
        cache = Path(folder) / "fingerprints.json"
        if (known := paths.root / "fingerprints.json").is_file():
            shutil.copyfile(known, cache)
        is_unchanged = fingerprint(corpus, cache) == record.data_fingerprint
    return UNCHANGED if is_unchanged else CHANGED, files
