"""Two runs side by side: what was different in what went in, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.progress import CACHED
from pipeline.runs import Run, status

_SIDES = ("a", "b")


def difference(a: Run, b: Run) -> dict[str, Any]:
    """What two runs differ in, from their own records; ``a`` and ``b`` are told in each part.

    ``config``, ``regard``, ``stack`` and ``machine`` hold only what differs; a side that does not
    have a key is left out there.
    """
    records = a.record(), b.record()
    return {
        **{side: _standing(run) for side, run in zip(_SIDES, (a, b), strict=True)},
        "config": differing(*(flattened(run.settings()) for run in (a, b))),
        "data": _data(*records),
        "scores": _scores(*records),
        "nodes": _nodes(a, b),
        **{
            part: differing(*(flattened(record.get(part) or {}) for record in records))
            for part in ("regard", "stack", "machine")
        },
    }


def flattened(value: Any, key: str = "") -> dict[str, Any]:
    """A nested value as one level: ``{"model.encoder.units": 128}``.

    A list of plain values is one value; of a list of sections each has its index in the key.
    """
    if isinstance(value, Mapping) and value:
        inner = {f"{key}.{name}" if key else str(name): part for name, part in value.items()}
    elif isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        inner = {f"{key}.{index}": part for index, part in enumerate(value)}
    else:
        return {key: value} if key else {}
    leaves = (flattened(part, path).items() for path, part in inner.items())
    return {name: leaf for some in leaves for name, leaf in some}


def _standing(run: Run) -> dict[str, Any]:
    record = run.record()
    wanted = ("started", "seconds", "pushed_version", "parent", "command")
    told = {key: record[key] for key in wanted if record.get(key) is not None}
    return {"run": run.full_id, "status": status(run), **told, "directory": str(run.directory)}


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The keys whose values differ, in the order of ``a``, then those that only ``b`` has."""
    absent = object()
    return [
        {
            "key": key,
            **{side: part[key] for side, part in zip(_SIDES, (a, b), strict=True) if key in part},
        }
        for key in dict.fromkeys([*a, *b])
        if a.get(key, absent) != b.get(key, absent)
    ]


def _data(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """Digests, rows and spans of both; whether it is the same data; findings that only one has."""
    told: dict[str, Any] = {}
    findings = {}
    for side, record in zip(_SIDES, (a, b), strict=True):
        data = record.get("data") or {}
        told[side] = {
            "fingerprint": record.get("data_fingerprint"),
            "rows": data.get("rows", {}),
            "spans": data.get("spans", []),
        }
        findings[side] = data.get("findings", [])
    prints = [told[side]["fingerprint"] for side in _SIDES]
    told["same"] = None if None in prints else prints[0] == prints[1]
    for side, other in (_SIDES, _SIDES[::-1]):
        told[side]["findings"] = [text for text in findings[side] if text not in findings[other]]
    return told


def _scores(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each metric of either: values, intervals, and what can be said where both have it.

    ``comparable`` is false where the signatures differ: then they measure different things.
    """
    found = [{score["name"]: score for score in record.get("scores") or []} for record in (a, b)]
    told = []
    for name in dict.fromkeys([*found[0], *found[1]]):
        both = [scores.get(name) for scores in found]
        any_of = both[0] or both[1] or {}
        entry: dict[str, Any] = {"name": name, "label": any_of.get("label", name)}
        entry["scale"] = any_of.get("scale", 100.0)
        for side, score in zip(_SIDES, both, strict=True):
            if score is not None:
                entry[side] = {
                    key: score[key] for key in ("value", "signature", "interval") if key in score
                }
        first, second = both
        if first and second:
            entry.update(_compared(first, second))
        told.append(entry)
    return told


def _compared(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"comparable": a.get("signature") == b.get("signature")}
    if not told["comparable"] or a["value"] is None or b["value"] is None:
        return told
    told["difference"] = b["value"] - a["value"]
    if told["difference"]:
        told["better"] = "b" if (told["difference"] > 0) == a.get("higher_is_better", True) else "a"
    if a.get("interval") and b.get("interval"):
        low = max(side["interval"]["low"] for side in (a, b))
        told["intervals_overlap"] = low <= min(side["interval"]["high"] for side in (a, b))
    return told


def _nodes(a: Run, b: Run) -> list[dict[str, Any]]:
    """State, seconds and peak of memory of each node; a cached one tells no seconds."""
    found = a.nodes(), b.nodes()
    return [
        {
            "name": name,
            **{
                side: _took(nodes[name])
                for side, nodes in zip(_SIDES, found, strict=True)
                if name in nodes
            },
        }
        for name in dict.fromkeys([*found[0], *found[1]])
    ]


def _took(facts: Mapping[str, Any]) -> dict[str, Any]:
    cached = facts.get("state") == CACHED
    return {"state": CACHED} if cached else dict(facts)
