"""Runs that pushed nothing: when, with which data, and why."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, TypedDict

from regard.components.common.run_record import (
    CACHED,
    DONE,
    FAILED,
    INTERRUPTED,
    KILLED,
    NOT_BLESSED,
    RunRecord,
)
from regard.pipeline.runs import store
from regard.pipeline.runs.store import Run
from regard.pipeline.workspace import PipelinePaths

_STATUSES = (NOT_BLESSED, FAILED, INTERRUPTED, KILLED)


class FailedRun(TypedDict):
    """A run that pushed nothing.

    Attributes:
        id: the id of the run.
        started: when it started, in seconds since 1970.
        status: its status in the run store.
        spans: the spans that it used, if it resolved them.
        reason: why it pushed nothing; empty if unknown.
    """

    id: str
    started: float
    status: str
    spans: list[dict[str, Any]]
    reason: str


def failed_runs_between(
    paths: PipelinePaths, after: str | None, before: str | None, pushing: Collection[str] = ()
) -> list[FailedRun]:
    """Return the runs of a pipeline that ended without a version, the oldest first.

    Runs that failed or were killed after their push, and those of ``regard tune``, are left out.

    Args:
        paths: the folders of the pipeline.
        after: creation time of the version before them; None: from the first run.
        before: creation time of the version after them; None: up to the newest run.
        pushing: the ids of runs that pushed a version.
    """
    first, last = _parse_time(after), _parse_time(before)
    failed: list[FailedRun] = []
    for run in store.runs_of(paths):
        record, status = run.record(), store.status(run)
        started = record.started or 0.0
        if first is not None and started <= first:
            continue
        if last is not None and started >= last:
            continue
        is_search = record.command.split()[:2] == ["regard", "tune"]
        if is_search or status not in _STATUSES:
            continue
        if run.id not in pushing and not _has_pushed(run, record):
            spans, reason = record.data.get("spans", []), _reason(run, record, status)
            facts = FailedRun(id=run.id, started=started, status=status, spans=spans, reason=reason)
            failed.append(facts)
    return failed


def _parse_time(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text or "").timestamp()
    except ValueError:
        return None


def _has_pushed(run: Run, record: RunRecord) -> bool:
    if "pushed_version" in record.model_fields_set:
        return bool(record.pushed_version)
    return bool(run.progress().pushed_model().get("pushed"))  # of a run that was killed


def _reason(run: Run, record: RunRecord, status: str) -> str:
    """Return why a run pushed nothing; for a run that was cut short, the node it was in."""
    if failure := record.failure:
        parts = (failure.node, failure.where, failure.error)
        return ": ".join(filter(None, parts))
    if status == NOT_BLESSED:
        return record.reason or ""
    unfinished = [name for name, node in run.nodes().items() if node.state not in (DONE, CACHED)]
    return f"in {unfinished[0]}" if unfinished else ""
