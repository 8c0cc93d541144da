"""Traces a version of the registry to its run, its data and the versions before it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.components.common.errors import UserError
from regard.components.registry import RECORD, Registry, VersionRecord, read_record
from regard.components.registry.records import RecordedSpan
from regard.pipeline.lineage.data import DataLineage, trace_data
from regard.pipeline.lineage.executions import (
    NodeExecution,
    PushingRun,
    trace_executions,
)
from regard.pipeline.lineage.failed_runs import FailedRun, failed_runs_between
from regard.pipeline.run_diff import ValueDiff, diff_values, flatten
from regard.pipeline.run_store import Run
from regard.pipeline.workspace import Workspace

# The fields of a version's record that the JSON form repeats.
_RECORD_FIELDS = (
    *("created", "digest", "blessing", "metrics", "regard", "stack", "data_fingerprint", "config"),
    *("rollback_of", "rolled_back_from", "reason", "warm_start"),
)
_RUN_FIELDS = ("started", "seconds", "command", "machine", "config")


@dataclasses.dataclass(frozen=True)
class SpanChanges:
    """How the spans of two versions differ.

    Attributes:
        new: spans that only the later version has.
        removed: spans that only the earlier version has.
        version: spans of which the later version has another version.
        replayed: spans that only the later version replays.
    """

    new: list[str]
    removed: list[str]
    version: list[str]
    replayed: list[str]


@dataclasses.dataclass(frozen=True)
class Parent:
    """A version that its successor was compared with.

    Attributes:
        model: ``NAME@VERSION``.
        record: its record; None if the version is not in the registry any more.
        changes: the configuration keys that differ: ``a`` here, ``b`` in the successor.
        same_data: whether the successor has the same data.
        span_changes: how the successor's spans differ.
        failed_before: runs before it that pushed nothing.
    """

    model: str
    record: VersionRecord | None = None
    changes: list[ValueDiff] = dataclasses.field(default_factory=list)
    same_data: bool = True
    span_changes: SpanChanges | None = None
    failed_before: list[FailedRun] = dataclasses.field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """Return the parent as JSON values."""
        if self.record is None:
            return {"model": self.model}
        record = self.record.to_dict()
        fields = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("record", "span_changes")
        }
        return {
            **fields,
            **{key: record[key] for key in ("created", "run", "metrics") if key in record},
            "started_from": self.record.warm_start.start.get("model"),
            "span_changes": self.span_changes and dataclasses.asdict(self.span_changes),
        }


@dataclasses.dataclass(frozen=True)
class Lineage:
    """Where a version came from.

    Attributes:
        record: the version's record.
        path: its folder.
        run: the id and the facts of the run that pushed it.
        nodes: the executions from the Pusher back to the data.
        data: the data.
        failed_before: runs between its parent and it that pushed nothing; see
            ``failed_runs_between``.
        failed_since: such runs between it and the next version.
        parents: the versions that it and its predecessors were compared with, back to the first.
        missing: what could not be found, in sentences.
    """

    record: VersionRecord
    path: Path
    run: dict[str, Any]
    nodes: list[NodeExecution]
    data: DataLineage
    failed_before: list[FailedRun]
    failed_since: list[FailedRun]
    parents: list[Parent]
    missing: list[str]

    @property
    def model(self) -> str:
        """``NAME@VERSION``."""
        return f"{self.record.name}@{self.record.version}"

    @property
    def seed(self) -> int | None:
        """The seed of the training."""
        return self.record.config.get("training", {}).get("seed")

    def to_dict(self) -> dict[str, object]:
        """Return the lineage as JSON values."""
        record = self.record.to_dict()
        return {
            "model": self.model,
            "path": str(self.path),
            **{key: record[key] for key in _RECORD_FIELDS if key in record},
            "seed": self.seed,
            "run": self.run,
            "nodes": [dataclasses.asdict(node) for node in self.nodes],
            "data": dataclasses.asdict(self.data),
            "failed_before": self.failed_before,
            "failed_since": self.failed_since,
            "parents": [parent.to_dict() for parent in self.parents],
            "missing": self.missing,
        }


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
        raise UserError(
            f"there is no {RECORD} with a name and a version, so the lineage is not known",
            where=str(version),
            remedy="Give NAME or NAME@VERSION of the registry; the Pusher writes the file.",
        )
    return _Tracer(version, record, workspace).trace()


class _Tracer:
    """Collects the lineage of one version, and sentences about what is missing."""

    def __init__(self, version: Path, record: VersionRecord, workspace: Workspace):
        self.version, self.record = version, record
        self.paths = workspace.pipeline(record.name)
        # Versions before and after: next to this one, or in the workspace's registry if the
        # folder was copied alone.
        self.registry, self.name = Registry(version.parent.parent), version.parent.name
        if self.name != record.name or len(self.registry.versions(self.name)) < 2:
            self.registry, self.name = Registry(workspace.registry), record.name
        self.missing: list[str] = []

    def trace(self) -> Lineage:
        pushing = self._executions()
        nodes = pushing.nodes if pushing else []
        run = self._run(self.record.run or (pushing.run if pushing else ""))
        data = trace_data(self.paths, self.record, nodes, self.missing)
        failed_before, failed_since = self._failed_runs()
        return Lineage(
            record=self.record,
            path=self.version,
            run=run,
            nodes=nodes,
            data=data,
            failed_before=failed_before,
            failed_since=failed_since,
            parents=self._parents(),
            missing=self.missing,
        )

    def _executions(self) -> PushingRun | None:
        metadata = self.paths.metadata
        if not metadata.is_file():
            self.missing.append(
                f"Executions and artifacts: there is no ML Metadata at {metadata}. If the model "
                "was made elsewhere, set REGARD_HOME to the workspace of its pipeline."
            )
            return None
        try:
            pushing = trace_executions(metadata, self.record.mlmd_uuid)
        except UserError as error:
            self.missing.append(f"Executions and artifacts: {error.where}: {error.message}.")
            return None
        if pushing is None:
            self.missing.append(
                f"Executions and artifacts: {metadata} does not contain this version. It was "
                "pushed from another workspace, or ML Metadata was recreated."
            )
        return pushing

    def _run(self, run_id: str) -> dict[str, Any]:
        """Return the facts of a run's record; only the id if its folder is gone."""
        if not run_id:
            self.missing.append("Run: the version does not name it.")
            return {}
        run = Run(self.paths.runs / run_id)
        record = run.record()
        if not record:
            self.missing.append(f"Run: there is no record at {run.directory}.")
            return {"id": run_id}
        facts = {key: value for key, value in record.items() if key in _RUN_FIELDS}
        return {"id": run_id, **facts, "directory": str(run.directory)}

    def _failed_runs(self) -> tuple[list[FailedRun], list[FailedRun]]:
        """Return the runs without a version before this version, and since."""
        numbers = self.registry.versions(self.name)
        if not numbers:
            self.missing.append(
                f"Runs before and since that pushed nothing: {self.registry.root} has no version of"
                f" {self.name} to delimit them."
            )
            return [], []
        later = [number for number in numbers if number > self.record.version]
        following = self.registry.record(self.name, later[0]) if later else None
        before = self._failed_before(self.record)
        return before, self._failed_between(self.record, following)

    def _failed_before(self, record: VersionRecord) -> list[FailedRun]:
        """Return the runs without a version between a version's parent and its first push.

        If the parent is gone, since the newest older version.
        """
        numbers = self.registry.versions(self.name)
        original = record
        if record.rollback_of is not None and record.rollback_of in numbers:
            original = self.registry.record(self.name, record.rollback_of)
        parent = self._parent_record(record)
        if parent is None and record.compared_with:
            older = [number for number in numbers if number < original.version]
            since = f"{self.name}@{older[-1]}" if older else "the first run"
            self.missing.append(
                f"Runs that pushed nothing between {self.name}@{record.compared_with} and "
                f"{self.name}@{original.version}: the former is gone, so runs since {since} are "
                "listed."
            )
            parent = self.registry.record(self.name, older[-1]) if older else None
        return self._failed_between(parent, original)

    def _failed_between(
        self, first: VersionRecord | None, last: VersionRecord | None
    ) -> list[FailedRun]:
        numbers = self.registry.versions(self.name)
        pushing_runs = {self.registry.record(self.name, number).run for number in numbers} - {""}
        after, before = (record.created if record else None for record in (first, last))
        return failed_runs_between(self.paths, after, before, pushing_runs)

    def _parent_record(self, record: VersionRecord) -> VersionRecord | None:
        """Return the record of the version that one was compared with; None if it is gone."""
        number = str(record.compared_with or "")
        exists = number.isdecimal() and int(number) in self.registry.versions(self.name)
        return self.registry.record(self.name, int(number)) if exists else None

    def _parents(self) -> list[Parent]:
        """Return the versions that were in production before, newest first."""
        parents: list[Parent] = []
        child, numbers = self.record, set[str]()  # deleted numbers return: there may be a cycle
        while (number := str(child.compared_with or "")) and number not in numbers:
            numbers.add(number)
            parent, model = self._parent_record(child), f"{self.name}@{number}"
            if parent is None:
                parents.append(Parent(model))
                self.missing.append(f"Versions before {model}: it is not in the registry any more.")
                break
            configs = (flatten(record.config) for record in (parent, child))
            parents.append(
                Parent(
                    model,
                    parent,
                    changes=diff_values(*configs),
                    same_data=parent.data_fingerprint == child.data_fingerprint,
                    span_changes=_span_changes(parent.spans, child.spans),
                    failed_before=self._failed_before(parent),
                )
            )
            child = parent
        return parents


def _span_changes(before: Sequence[RecordedSpan], after: Sequence[RecordedSpan]) -> SpanChanges:
    old, new = ({span.name: span for span in spans} for spans in (before, after))
    shared = [(old[name], span) for name, span in new.items() if name in old]
    return SpanChanges(
        new=[name for name in new if name not in old],
        removed=[name for name in old if name not in new],
        version=[b.name for a, b in shared if a.version != b.version],
        replayed=[b.name for a, b in shared if b.replayed and not a.replayed],
    )
