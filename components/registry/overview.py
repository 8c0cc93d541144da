"""What there is in the registry, a plain mapping a version."""

from __future__ import annotations

import contextlib
from collections.abc import Set
from pathlib import Path
from typing import Any

from components.errors import UserError
from components.registry.pins import is_pinned
from components.registry.publishing import content_digest
from components.registry.records import known_of, read_record
from components.registry.versions import MODEL_FILE, Registry
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
    ``withdrawn``; its ``scores``; and what its record says, or as ``unreadable`` why it cannot be
    read. What is pushed or pruned meanwhile is there as a whole or not at all.

    Args:
        registry: where.
        name: only this model.

    Raises:
        UserError: there is no model of that name.
    """
    if name is not None:
        registry.number(name)  # refuses a name that is not there
    names = [name] if name is not None else registry.names()
    return [told for one in names for told in _of(registry, one)]


def entry(registry: Registry, name: str, version: int) -> dict[str, Any]:
    """One version.

    Raises:
        UserError: it is not there.
    """
    for told in _of(registry, name):
        if told["version"] == version:
            return told
    registry.number(name, version)  # says what there is
    raise UserError(f"{name}@{version} has only just come", remedy="Ask again.")


def _of(registry: Registry, name: str) -> list[dict[str, Any]]:
    """The versions of a model, at one moment."""
    while versions := registry.versions(name):
        live = versions[-1]
        bad = {one["digest"] for one in known_of(registry.path(name, live)).get("withdrawn", ())}
        found = []
        for version in reversed(versions):
            path = registry.path(name, version)
            with contextlib.suppress(FileNotFoundError):
                told = _entry(path, live=version == live, bad=bad)
                # It goes as a whole, at once: what is there now was there all the time.
                found += [told] if (path / MODEL_FILE).is_file() else []
        if found and found[0]["live"]:
            return found
        # The live version was superseded and pruned meanwhile: another one is live.
    return []


def _entry(path: Path, live: bool, bad: Set[str]) -> dict[str, Any]:
    unreadable = {}
    try:
        record = read_record(path)
    except UserError as error:
        record, unreadable = {}, {"unreadable": error.message}
    return {
        "name": path.parent.name,
        "version": int(path.name),
        "live": live,
        "pinned": is_pinned(path),
        "withdrawn": bool(bad) and (record.get("digest") or content_digest(path)) in bad,
        "scores": _scores(record),
        **{key: record[key] for key in _OWN if key in record},
        **unreadable,
        "path": str(path),
        "bytes": size_of(path),
    }


def size_of(version: Path) -> int:
    """The bytes of a version's files, as far as it is still there; none of what is a link."""
    total = 0
    with contextlib.suppress(FileNotFoundError):  # it may be pruned just now
        for file in () if version.is_symlink() else version.rglob("*"):
            total += file.lstat().st_size if file.is_file() else 0
    return total


def _scores(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics as people write them; one that this version of Regard does not know as it is."""
    scores = []
    for name, metric in record.get("metrics", {}).items():
        known = METRICS.get(name)
        about = {"label": known.label, "scale": known.scale} if known else {"label": name}
        scores.append({"name": name, **about, **metric})
    return scores
