"""Copies a new model to the next version of the registry, unless it is there already."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.registry import Registry
from components.registry.publishing import (
    Withdrawn,
    content_digest,
    copy,
    digest_of,
    publish,
    remove_leftovers,
    withdrawn,
    workplace,
)


class _IsThere(Exception):
    """The newest version is this same model."""

    def __init__(self, version: int):
        super().__init__(version)
        self.version = version


def push(
    model: Path,
    registry: Path,
    name: str,
    record: dict[str, Any],
    code: str = "",
    extra: Mapping[str, bytes] | None = None,
) -> tuple[int, bool]:
    """Copies a SavedModel to the next version, unless the newest version is the same model.

    Several processes may push at once: each gets a version of its own.

    Args:
        model: the SavedModel's folder.
        registry: the registry's folder; made if it is not there.
        name: the model's name.
        record: what ``regard.json`` says beside the name, version, time and digest.
        code: a digest of the pushing code, for ``regard.json``.
        extra: what is put beside the model, by path.

    Returns:
        The version, and whether it is new.

    Raises:
        Withdrawn: production was rolled back from this model. Only people bring it back.
        UserError: the newest version's record cannot be read.
    """
    folder = registry / name
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    digest = content_digest(model)
    newest = Registry(registry).latest(name)
    if newest is not None and digest_of(folder / str(newest)) == digest:
        return newest, False

    def full(newest: int | None) -> dict[str, Any]:
        if newest is not None:
            if digest_of(folder / str(newest)) == digest:  # pushed by another one meanwhile
                raise _IsThere(newest)
            for one in withdrawn(folder / str(newest)):
                if one["digest"] == digest:
                    raise Withdrawn(one["version"])
        return {"code": code, **record, "digest": digest}

    with workplace(folder) as temporary:
        copy(model, temporary)
        for path, content in (extra or {}).items():
            (temporary / path).parent.mkdir(parents=True, exist_ok=True)
            (temporary / path).write_bytes(content)
        try:
            return publish(folder, temporary, full), True
        except _IsThere as found:
            return found.version, False
