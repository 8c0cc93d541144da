"""Removes old versions, one rename each, and never one that is needed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from components.registry.overview import size_of
from components.registry.pins import is_pinned
from components.registry.publishing import (
    REMOVED,
    discard,
    locked,
    remove_leftovers,
    sync_folder,
)
from components.registry.versions import Registry


@dataclass(frozen=True)
class Verdict:
    """What becomes of a version.

    Attributes:
        version: its number.
        bytes: of its files; of one that goes, of those that could be removed.
        kept: why it stays; None for one that goes.
        left: what could not be removed of one that goes, under another name.
    """

    version: int
    bytes: int
    kept: str | None
    left: str | None = None


def prune(
    registry: Registry,
    name: str,
    keep: int,
    held: Mapping[int, str] | None = None,
    dry_run: bool = False,
) -> list[Verdict]:
    """Removes all but the newest versions, and those that are needed.

    The live version, which is the newest, is always kept, and pinned ones, those in ``held``, and
    those that ``regard serve`` has loaded on this machine. A version first gets a hidden name, so
    that no one finds a part of it; who is killed then leaves what the next push or prune removes.

    Args:
        registry: where.
        name: the model.
        keep: how many of the newest stay, at least 1.
        held: versions that are needed for other reasons, with these.
        dry_run: whether to remove nothing.

    Returns:
        What became of each version, the newest first; with ``dry_run`` what would.

    Raises:
        UserError: there is no such model.
        OSError: the registry cannot be written.
    """
    registry.number(name)  # refuses a name that is not there
    folder = registry.root / name
    with locked(folder, wait=True):
        if not dry_run:
            remove_leftovers(folder)
        # A push that goes on can only add a newer one.
        versions = sorted(registry.versions(name), reverse=True)
        found = []
        for place, version in enumerate(versions):
            path = registry.path(name, version)
            size = size_of(path)
            reason = "live" if place == 0 else None
            reason = reason or ("pinned" if is_pinned(path) else None)
            reason = reason or (held or {}).get(version)
            reason = reason or (f"among the newest {keep}" if place < keep else None)
            found.append(
                Verdict(version, size, reason) if reason else _removed(path, size, dry_run)
            )
        return found


def _removed(version: Path, size: int, dry_run: bool) -> Verdict:
    """Removes a version, unless it is in use."""
    number = int(version.name)
    try:
        with locked(version):  # a server that has loaded it holds the lock, too
            if dry_run:
                return Verdict(number, size, None)
            aside = version.with_name(f"{REMOVED}{version.name}-{uuid.uuid4().hex[:8]}")
            # Not while a new version is given its number: see ``publish``.
            with locked(version.parents[1], wait=True):
                os.rename(version, aside)
            sync_folder(version.parent)
    except BlockingIOError:
        return Verdict(number, size, "in use")
    discard(aside)
    if not aside.exists():
        return Verdict(number, size, None)
    return Verdict(number, size - size_of(aside), None, left=str(aside))
