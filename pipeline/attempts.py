"""Runs that pushed nothing: when, of which data, and why."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from pipeline import progress, runs
from pipeline.progress import CACHED, DONE
from pipeline.runs import Run
from pipeline.workspace import PipelinePaths

_PUSHED_NOTHING = (runs.NOT_BLESSED, runs.FAILED, runs.INTERRUPTED, runs.KILLED)


def between(
    paths: PipelinePaths,
    after: dict[str, Any] | None,
    before: dict[str, Any] | None,
    pushing: Collection[str] = (),
) -> list[dict[str, Any]]:
    """The runs of a pipeline that ended without a version, the oldest first.

    Not those that failed or were killed after their push, and not those of ``regard tune``.

    Of each its ``id``, when it ``started``, its ``status``, the ``spans`` that it took as far as it
    came to know them, and the ``reason``.

    Args:
        paths: of the pipeline.
        after: the record of the version that they came after; None: from the first run on.
        before: the record of the version that they came before; None: up to the newest run.
        pushing: the ids of runs that versions name, so that they pushed.
    """
    first, last = _created(after), _created(before)
    found = []
    for run in runs.runs_of(paths):
        record, status = run.record(), runs.status(run)
        started = record.get("started", 0.0)
        if status not in _PUSHED_NOTHING or not _within(started, first, last):
            continue
        if run.id in pushing or _pushed(run, record) or _is_search(record):
            continue
        told = {"id": run.id, "started": started, "status": status, "reason": _reason(run, status)}
        found.append({**told, "spans": record.get("data", {}).get("spans", [])})
    return found


def _created(record: dict[str, Any] | None) -> float | None:
    try:
        return datetime.fromisoformat((record or {}).get("created", "")).timestamp()
    except ValueError:
        return None


def _within(moment: float, first: float | None, last: float | None) -> bool:
    return (first is None or moment > first) and (last is None or moment < last)


def _pushed(run: Run, record: dict[str, Any]) -> bool:
    if "pushed_version" in record:
        return bool(record["pushed_version"])
    pusher = progress.read(run.events).nodes.get("Pusher")  # of a run that was killed
    return bool(pusher and pusher.properties.get("pushed_model", {}).get("pushed"))


def _is_search(record: dict[str, Any]) -> bool:
    return (record.get("command") or "").split()[:2] == ["regard", "tune"]


def _reason(run: Run, status: str) -> str:
    """Why a run pushed nothing; of one that was stopped, where it was."""
    record = run.record()
    if failure := record.get("failure"):
        return ": ".join(
            filter(None, (failure.get("node"), failure.get("where"), failure["error"]))
        )
    if status == runs.NOT_BLESSED:
        return record.get("reason") or ""
    begun = [name for name, node in run.nodes().items() if node["state"] not in (DONE, CACHED)]
    return f"in {begun[0]}" if begun else ""
