"""The difference between two runs: configuration, data, scores, nodes, code and machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from regard.pipeline.progress import CACHED, NodeFacts
from regard.pipeline.run_store import Interval, Run, RunRecord, Score, SpanSummary, status

SIDES = ("a", "b")


class RunOverview(TypedDict, total=False):
    """One of the two runs."""

    run: str
    status: str
    started: float
    seconds: float
    pushed_version: str | None
    parent: str | None
    command: str
    directory: str


class ValueDiff(TypedDict, total=False):
    """A key whose value differs; a run without the key has no entry."""

    key: str
    a: Any
    b: Any


class DataSide(TypedDict):
    """The data of one run; ``findings`` are those that only this run has."""

    fingerprint: str | None
    rows: dict[str, int]
    spans: list[SpanSummary]
    findings: list[str]


class DataDiff(TypedDict):
    """The data of both runs; ``same`` is None if a fingerprint is unknown."""

    a: DataSide
    b: DataSide
    same: bool | None


class ScoreSide(TypedDict, total=False):
    """A metric of one run."""

    value: float | None
    signature: str
    interval: Interval


class ScoreDiff(TypedDict, total=False):
    """A metric of both runs; not ``comparable`` if the signatures differ."""

    name: str
    label: str
    scale: float
    a: ScoreSide
    b: ScoreSide
    comparable: bool
    difference: float
    better: str
    intervals_overlap: bool


class NodeDiff(TypedDict, total=False):
    """A node of both runs."""

    name: str
    a: NodeFacts
    b: NodeFacts


class RunDiff(TypedDict):
    """The output of ``regard runs diff --json``."""

    a: RunOverview
    b: RunOverview
    config: list[ValueDiff]
    data: DataDiff
    scores: list[ScoreDiff]
    nodes: list[NodeDiff]
    regard: list[ValueDiff]
    stack: list[ValueDiff]
    machine: list[ValueDiff]


def diff_runs(a: Run, b: Run) -> RunDiff:
    """Compare two runs by their records.

    ``config``, ``regard``, ``stack`` and ``machine`` contain only the values that differ.
    """
    first, second = a.record(), b.record()
    return {
        "a": _overview(a),
        "b": _overview(b),
        "config": diff_values(flatten(a.settings()), flatten(b.settings())),
        "data": _diff_data(first, second),
        "scores": _diff_scores(first.get("scores") or [], second.get("scores") or []),
        "nodes": _diff_nodes(a.nodes(), b.nodes()),
        "regard": diff_values(first.get("regard", {}), second.get("regard", {})),
        "stack": diff_values(first.get("stack", {}), second.get("stack", {})),
        "machine": diff_values(flatten(first.get("machine")), flatten(second.get("machine"))),
    }


def flatten(value: Any, key: str = "") -> dict[str, Any]:
    """Flatten nested mappings to one level: ``{"model.encoder.units": 128}``.

    A list of plain values is one value; sections in a list have their index in the key.
    """
    if isinstance(value, Mapping) and value:
        children = {f"{key}.{name}" if key else str(name): child for name, child in value.items()}
    elif isinstance(value, list) and any(isinstance(child, Mapping) for child in value):
        children = {f"{key}.{index}": child for index, child in enumerate(value)}
    else:
        return {key: value} if key else {}
    leaves: dict[str, Any] = {}
    for path, child in children.items():
        leaves.update(flatten(child, path))
    return leaves


def diff_values(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[ValueDiff]:
    """The keys whose values differ, in the order of ``a``, then those of ``b`` only."""
    absent = object()
    diffs: list[ValueDiff] = []
    for key in dict.fromkeys([*a, *b]):
        if a.get(key, absent) != b.get(key, absent):
            diff: ValueDiff = {"key": key}
            if key in a:
                diff["a"] = a[key]
            if key in b:
                diff["b"] = b[key]
            diffs.append(diff)
    return diffs


def _overview(run: Run) -> RunOverview:
    record = run.record()
    overview: RunOverview = {"run": run.full_id, "status": status(run)}
    for key in ("started", "seconds", "pushed_version", "parent", "command"):
        if record.get(key) is not None:
            overview[key] = record[key]
    overview["directory"] = str(run.directory)
    return overview


def _diff_data(a: RunRecord, b: RunRecord) -> DataDiff:
    first, second = _data(a, b), _data(b, a)
    fingerprints = first["fingerprint"], second["fingerprint"]
    same = None if None in fingerprints else fingerprints[0] == fingerprints[1]
    return {"a": first, "b": second, "same": same}


def _data(record: RunRecord, other: RunRecord) -> DataSide:
    data, other_findings = record.get("data") or {}, (other.get("data") or {}).get("findings", [])
    return {
        "fingerprint": record.get("data_fingerprint"),
        "rows": data.get("rows", {}),
        "spans": data.get("spans", []),
        "findings": [text for text in data.get("findings", []) if text not in other_findings],
    }


def _diff_scores(a: Iterable[Score], b: Iterable[Score]) -> list[ScoreDiff]:
    first, second = ({score["name"]: score for score in scores} for scores in (a, b))
    diffs = []
    for name in dict.fromkeys([*first, *second]):
        any_score = first.get(name) or second[name]
        diff: ScoreDiff = {
            "name": name,
            "label": any_score.get("label", name),
            "scale": any_score.get("scale", 100.0),
        }
        if name in first:
            diff["a"] = _score(first[name])
        if name in second:
            diff["b"] = _score(second[name])
        if name in first and name in second:
            diff.update(_compare_scores(first[name], second[name]))
        diffs.append(diff)
    return diffs


def _score(score: Score) -> ScoreSide:
    side: ScoreSide = {}
    for key in ("value", "signature", "interval"):
        if key in score:
            side[key] = score[key]
    return side


def _compare_scores(a: Score, b: Score) -> ScoreDiff:
    diff: ScoreDiff = {"comparable": a.get("signature") == b.get("signature")}
    if not diff["comparable"] or a["value"] is None or b["value"] is None:
        return diff
    diff["difference"] = b["value"] - a["value"]
    if diff["difference"]:
        diff["better"] = "b" if (diff["difference"] > 0) == a.get("higher_is_better", True) else "a"
    if a.get("interval") and b.get("interval"):
        low = max(a["interval"]["low"], b["interval"]["low"])
        diff["intervals_overlap"] = low <= min(a["interval"]["high"], b["interval"]["high"])
    return diff


def _diff_nodes(a: Mapping[str, NodeFacts], b: Mapping[str, NodeFacts]) -> list[NodeDiff]:
    diffs = []
    for name in dict.fromkeys([*a, *b]):
        diff: NodeDiff = {"name": name}
        if name in a:
            diff["a"] = _cost(a[name])
        if name in b:
            diff["b"] = _cost(b[name])
        diffs.append(diff)
    return diffs


def _cost(facts: NodeFacts) -> NodeFacts:
    """The facts of a node; the duration of a cache lookup is omitted."""
    return {"state": CACHED} if facts.get("state") == CACHED else facts
