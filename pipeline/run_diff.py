"""The difference between two runs: configuration, data, scores, nodes, code and machine."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypedDict, TypeVar, cast

from regard.pipeline.progress import CACHED, NodeFacts
from regard.pipeline.run_store import Run, RunRecord, Score, SpanSummary, status

T = TypeVar("T")


class RunOverview(RunRecord, total=False):
    """One of the two runs: some fields of its record, and its full id."""

    run: str


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


class ScoreDiff(TypedDict, total=False):
    """A metric of both runs; not ``comparable`` if the signatures differ."""

    name: str
    label: str
    scale: float
    a: Score
    b: Score
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
        "nodes": [
            cast(NodeDiff, {"name": name, **{side: _cost(facts) for side, facts in sides.items()}})
            for name, sides in _by_side(a.nodes(), b.nodes())
        ],
        "regard": diff_values(first.get("regard", {}), second.get("regard", {})),
        "stack": diff_values(first.get("stack", {}), second.get("stack", {})),
        "machine": diff_values(flatten(first.get("machine")), flatten(second.get("machine"))),
    }


def flatten(value: object, key: str = "") -> dict[str, object]:
    """Flatten nested mappings to one level: ``{"model.encoder.units": 128}``.

    A list of plain values is one value; sections in a list have their index in the key.
    """
    if isinstance(value, Mapping) and value:
        children: Iterable[tuple[object, object]] = value.items()
    elif isinstance(value, list) and any(isinstance(child, Mapping) for child in value):
        children = enumerate(value)
    else:
        return {key: value} if key else {}
    leaves = {}
    for name, child in children:
        leaves.update(flatten(child, f"{key}.{name}" if key else str(name)))
    return leaves


def diff_values(a: Mapping[str, object], b: Mapping[str, object]) -> list[ValueDiff]:
    """The keys whose values differ, in the order of ``a``, then those of ``b`` only."""
    return [
        cast(ValueDiff, {"key": key, **sides})
        for key, sides in _by_side(a, b)
        if len(sides) == 1 or sides["a"] != sides["b"]
    ]


def _by_side(a: Mapping[str, T], b: Mapping[str, T]) -> Iterator[tuple[str, dict[str, T]]]:
    """Yield every key with its values by side; a side without the key has no entry."""
    for key in dict.fromkeys([*a, *b]):
        yield key, {side: values[key] for side, values in (("a", a), ("b", b)) if key in values}


def _overview(run: Run) -> RunOverview:
    keys = ("started", "seconds", "pushed_version", "parent", "command")
    facts = {key: value for key, value in run.record().items() if key in keys and value is not None}
    overview = {"run": run.full_id, "status": status(run), **facts, "directory": str(run.directory)}
    return cast(RunOverview, overview)


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
    for name, sides in _by_side(first, second):
        score = next(iter(sides.values()))
        label, scale = score.get("label", name), score.get("scale", 100.0)
        diff = cast(ScoreDiff, {"name": name, "label": label, "scale": scale, **sides})
        if len(sides) == 2:
            diff.update(_compare_scores(first[name], second[name]))
        diffs.append(diff)
    return diffs


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


def _cost(facts: NodeFacts) -> NodeFacts:
    """The facts of a node; the duration of a cache lookup is omitted."""
    return {"state": CACHED} if facts.get("state") == CACHED else facts
