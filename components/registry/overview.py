"""What there is in the registry, a plain mapping a version."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from components.registry.pins import is_pinned
from components.registry.publishing import digest_of, withdrawn
from components.registry.versions import Registry, read_record
from models.metrics import METRICS

# What of a version's record is told as it stands there.
_OWN = (
    *("created", "run", "blessing", "compared_with", "rollback_of", "rolled_back_from", "reason"),
    "warm_start",
    *("rows", "spans", "data_fingerprint", "recipe", "digest", "regard", "stack"),
)


def entries(registry: Registry, name: str | None = None) -> list[dict[str, Any]]:
    """Every version, by name, the newest first.

    Of each its ``name``, ``version`` and ``path``; whether it is ``live``, ``pinned`` or
    ``withdrawn``; its ``scores``; and what its record says.

    Args:
        registry: where.
        name: only this model.

    Raises:
        UserError: there is no model of that name, or a record is not JSON.
    """
    if name is not None:
        registry.number(name)  # refuses a name that is not there
    return [
        entry(registry, one, version)
        for one in ([name] if name is not None else registry.names())
        for version in reversed(registry.versions(one))
    ]


def entry(registry: Registry, name: str, version: int) -> dict[str, Any]:
    """One version, which is there."""
    path, live = registry.path(name, version), registry.number(name)
    record = read_record(path)
    bad = {one["digest"] for one in withdrawn(registry.path(name, live))}
    return {
        "name": name,
        "version": version,
        "live": version == live,
        "pinned": is_pinned(path),
        "withdrawn": bool(bad) and digest_of(path) in bad,
        "scores": _scores(record),
        **{key: record[key] for key in _OWN if key in record},
        "path": str(path),
        "bytes": size_of(path),
    }


def size_of(version: Path) -> int:
    """The bytes of a version's files, as far as it is still there."""
    total = 0
    for file in version.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # it may be pruned just now
            total += file.stat().st_size if file.is_file() else 0
    return total


def _scores(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics as people write them; one that this version of Regard does not know as it is."""
    scores = []
    for name, metric in record.get("metrics", {}).items():
        known = METRICS.get(name)
        about = {"label": known.label, "scale": known.scale} if known else {"label": name}
        scores.append({"name": name, **about, **metric})
    return scores
