"""Pins versions, and removes old versions that nothing needs, with one rename each."""

import contextlib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from regard.components.registry import publish
from regard.components.registry.records import RECORD, read_record_or_empty
from regard.components.registry.store import Registry, is_pinned
from regard.core.locks import acquire_existing
from regard.core.owned_folders import has_mark
from regard.serving.contract import MODEL_FILE, PIN


@dataclass(frozen=True)
class PruneResult:
    """What happened to a version.

    Attributes:
        version: the number.
        bytes: the size of its files.
        kept_because: the reason why it stays; None if it is removed.
    """

    version: int
    bytes: int
    kept_because: str | None


def pin(registry: Registry, name: str, version: int) -> bool:
    """Pin a version, so that `prune` keeps it; return whether it was not pinned before.

    Raises:
        UserError: there is no such version.
    """
    registry.number(name, version)
    with publish.change_lock(registry.root / name):  # it may be pruned during the wait
        path = registry.path(name, registry.number(name, version))
        is_new = not is_pinned(path)
        if registry.mirror is not None:
            registry.mirror.pin(path, True)
        (path / PIN).touch()
        return is_new


def unpin(registry: Registry, name: str, version: int) -> bool:
    """Remove the pin of a version; return whether there was one.

    Raises:
        UserError: there is no such version.
    """
    path = registry.path(name, registry.number(name, version))
    was_pinned = is_pinned(path)
    if registry.mirror is not None:
        registry.mirror.pin(path, False)
    (path / PIN).unlink(missing_ok=True)
    return was_pinned


def prune(
    registry: Registry,
    name: str,
    keep: int,
    needed: Mapping[int, str] | None = None,
    dry_run: bool = False,
    withdrawn: bool = False,
) -> list[PruneResult]:
    """Remove all but the newest versions and those that are needed.

    The live version, which is the newest, always stays, as do pinned versions, those in
    ``needed``, folders without a record and links, which Regard did not create, and versions that
    ``regard serve`` has loaded, also on other hosts if the file system has locks across hosts. A
    version is first renamed to a hidden name, so that nobody sees a part of it; the next push or
    prune removes what a killed process leaves.

    Args:
        registry: the registry.
        name: the model's name.
        keep: the number of the newest versions that stay, at least 1.
        needed: versions that are needed for other reasons, with the reasons.
        dry_run: whether to remove nothing.
        withdrawn: whether to remove versions that production was rolled back from, too.

    Returns:
        The result for each version, newest first; with ``dry_run`` the expected one.

    Raises:
        UserError: there is no such model.
        OSError: the registry cannot be written.
    """
    registry.number(name)  # raises an error for unknown names
    folder = registry.root / name
    with contextlib.nullcontext() if dry_run else publish.change_lock(folder):
        if not dry_run:
            publish.remove_leftovers(folder)
        results = []
        newest = read_record_or_empty(registry.path(name, registry.number(name)))
        bad = set() if withdrawn else {model.digest for model in newest.withdrawn}
        # A concurrent push can only add a newer version.
        for rank, version in enumerate(sorted(registry.versions(name), reverse=True)):
            path = registry.path(name, version)
            size = registry.size(path)
            reason = "live" if rank == 0 else _reason_to_keep(path, needed or {}, bad)
            if reason is None and rank < keep:
                reason = f"among the newest {keep}"
            if reason is None:
                results.append(_remove(path, size, dry_run))
            else:
                results.append(PruneResult(version, size, reason))
        return results


def _reason_to_keep(version: Path, needed: Mapping[int, str], bad: Set[str]) -> str | None:
    """Return why a version stays, however old it is; None if there is no such reason.

    Args:
        version: the folder of the version.
        needed: versions that are needed for other reasons, with the reasons.
        bad: the digests of withdrawn models that stay.
    """
    if not has_mark(version, RECORD):
        return "not published by Regard"
    if is_pinned(version):
        return "pinned"
    if int(version.name) in needed:
        return needed[int(version.name)]
    if bad and read_record_or_empty(version).digest in bad:
        return "withdrawn, see --withdrawn"
    return None


def _remove(version: Path, size: int, dry_run: bool) -> PruneResult:
    """Remove a version unless it is in use."""
    number = int(version.name)
    try:
        # A server that has loaded the version holds this lock, too.
        with acquire_existing(version / MODEL_FILE):
            if dry_run:
                return PruneResult(number, size, None)
            # Not while a new version is given its number: see `publish`.
            with publish.number_lock(version.parent):
                hidden = publish.hide(version)
    except BlockingIOError:
        return PruneResult(number, size, "in use")
    publish.remove_tree(hidden)  # the next push or prune removes what cannot be removed now
    return PruneResult(number, size, None)
