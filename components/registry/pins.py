"""Pinned versions: those that pruning never removes."""

from __future__ import annotations

from pathlib import Path

# An empty file beside the model: it is there or not, whoever is killed, and goes with its version.
PIN = "regard.pinned"


def is_pinned(version: Path) -> bool:
    """Whether the version in this folder is pinned."""
    return (version / PIN).exists()


def pin(version: Path) -> bool:
    """Pins a version; returns whether it was not before."""
    new = not is_pinned(version)
    (version / PIN).touch()
    return new


def unpin(version: Path) -> bool:
    """Takes the pin away; returns whether there was one."""
    there = is_pinned(version)
    (version / PIN).unlink(missing_ok=True)
    return there
