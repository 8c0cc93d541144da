"""Pinned versions: those that pruning never removes."""

from __future__ import annotations

from pathlib import Path

from components.registry.publishing import locked
from components.registry.versions import PIN, Registry


def is_pinned(version: Path) -> bool:
    """Whether the version in this folder is pinned."""
    return (version / PIN).exists()


def pin(registry: Registry, name: str, version: int) -> bool:
    """Pins a version; returns whether it was not before.

    Raises:
        UserError: there is no such version, or none any more.
    """
    registry.number(name, version)
    with locked(registry.root / name, wait=True):  # it may have been pruned while we waited
        path = registry.path(name, registry.number(name, version))
        new = not is_pinned(path)
        (path / PIN).touch()
        return new


def unpin(registry: Registry, name: str, version: int) -> bool:
    """Takes the pin away; returns whether there was one.

    Raises:
        UserError: there is no such version.
    """
    path = registry.path(name, registry.number(name, version))
    there = is_pinned(path)
    (path / PIN).unlink(missing_ok=True)
    return there
