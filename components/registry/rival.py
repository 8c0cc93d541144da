"""The version in production, with which a new model and its data are compared."""

from __future__ import annotations

from pathlib import Path

from components.registry.versions import Registry

LATEST = "latest"


def rival(production: str, version: str) -> tuple[str, str]:
    """Folder and number of the version to compare with; empty where there is none.

    Args:
        production: its folder, or empty; or, with ``LATEST``, the folder of all versions.
        version: its number, or ``LATEST``: the newest one that is there now.
    """
    if version != LATEST:
        return production, version
    folder = Path(production)
    registry = Registry(folder.parent)
    newest = registry.latest(folder.name)
    return (
        (str(registry.path(folder.name, newest)), str(newest)) if newest is not None else ("", "")
    )
