"""The difference between two runs: configuration, data, scores, nodes, code and machine.

The values of the two runs have the keys ``a`` and ``b``. A run without a value has no such key.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from regard.pipeline.progress import CACHED, NodeFacts
from regard.pipeline.run_store import Run, RunRecord, status

Entry = dict[str, Any]


def diff_runs(a: Run, b: Run) -> dict[str, Any]:
    """Compare two runs by their records.

    Returns:
        The output of ``regard runs diff --json``. ``config``, ``regard``, ``stack`` and ``machine``
        list the keys whose values differ, ``scores`` and ``nodes`` everything by ``name``.
        ``data`` has the data of both runs, each with the findings that only this run has; its
        ``same`` is None if a fingerprint is unknown.
    """
    first, second = a.record(), b.record()
    data_a, data_b = _data(first, second), _data(second, first)
    fingerprints = data_a["fingerprint"], data_b["fingerprint"]
    same = None if None in fingerprints else fingerprints[0] == fingerprints[1]
    return {
        "a": _overview(a),
        "b": _overview(b),
        "config": diff_values(flatten(a.settings()), flatten(b.settings())),
        "data": {"a": data_a, "b": data_b, "same": same},
        "scores": _diff_scores(first.get("scores") or [], second.get("scores") or []),
        "nodes": _by_side("name", _costs(a.nodes()), _costs(b.nodes())),
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


def diff_values(a: Mapping[str, object], b: Mapping[str, object]) -> list[Entry]:
    """Return an entry for each ``key`` whose values differ, in the order of ``a`` and ``b``."""
    return [one for one in _by_side("key", a, b) if len(one) == 2 or one["a"] != one["b"]]


def _by_side(label: str, a: Mapping[str, object], b: Mapping[str, object]) -> list[Entry]:
    """Return an entry for each key, with the key under ``label`` and its values by side."""
    return [
        {
            label: key,
            **{side: values[key] for side, values in (("a", a), ("b", b)) if key in values},
        }
        for key in dict.fromkeys([*a, *b])
    ]


def _overview(run: Run) -> Entry:
    keys = ("started", "seconds", "pushed_version", "parent", "command")
    facts = {key: value for key, value in run.record().items() if key in keys and value is not None}
    return {"run": run.full_id, "status": status(run), **facts, "directory": str(run.directory)}


def _data(record: RunRecord, other: RunRecord) -> Entry:
    data, other_findings = record.get("data") or {}, (other.get("data") or {}).get("findings", [])
    return {
        "fingerprint": record.get("data_fingerprint"),
        "rows": data.get("rows", {}),
        "spans": data.get("spans", []),
        "findings": [text for text in data.get("findings", []) if text not in other_findings],
    }


def _diff_scores(a: Iterable[Entry], b: Iterable[Entry]) -> list[Entry]:
    """Compare metrics; they are not ``comparable`` if their signatures differ."""
    entries = _by_side("name", *({score["name"]: score for score in scores} for scores in (a, b)))
    for entry in entries:
        score = entry.get("a") or entry["b"]
        entry.update(label=score.get("label", score["name"]), scale=score.get("scale", 100.0))
        if "a" in entry and "b" in entry:
            entry.update(_compare_scores(entry["a"], entry["b"]))
    return entries


def _compare_scores(a: Entry, b: Entry) -> Entry:
    diff: Entry = {"comparable": a.get("signature") == b.get("signature")}
    if not diff["comparable"] or a["value"] is None or b["value"] is None:
        return diff
    diff["difference"] = b["value"] - a["value"]
    if diff["difference"]:
        diff["better"] = "b" if (diff["difference"] > 0) == a.get("higher_is_better", True) else "a"
    if a.get("interval") and b.get("interval"):
        low = max(a["interval"]["low"], b["interval"]["low"])
        diff["intervals_overlap"] = low <= min(a["interval"]["high"], b["interval"]["high"])
    return diff


def _costs(nodes: Mapping[str, NodeFacts]) -> dict[str, NodeFacts]:
    """Return the facts of the nodes; the duration of a cache lookup is omitted."""
    cached: NodeFacts = {"state": CACHED}
    return {name: cached if one.get("state") == CACHED else one for name, one in nodes.items()}
