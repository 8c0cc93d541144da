"""Which model a training starts from: found in the registry, and told by its content."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.errors import UserError
from components.registry import Registry, read_record
from components.registry.publishing import digest_of
from components.registry.records import known_of
from pipeline.config.training import PRODUCTION

if TYPE_CHECKING:
    from pipeline.config import Config


def find(config: Config, registry: Registry, own: str) -> dict[str, str]:
    """The model of ``training.warm_start.from``; nothing where there is none to start from.

    A version that this very training has made is not its own start: that is what it started from
    itself, so that a second run finds everything in the cache. So does one that a version of this
    training was made from before: a model that was withdrawn is known again, and not made anew.

    Args:
        config: the pipeline's.
        registry: where its models are.
        own: what the training is known by, whatever it starts from; see ``record``.

    Returns:
        What the ``model`` is called, its ``path``, and the ``digest`` of its content.

    Raises:
        UserError: there is no such model.
    """
    if config.training.warm_start is None:
        return {}
    given = getattr(config.training.warm_start, "from")
    if given == PRODUCTION:
        newest = registry.latest(config.name)
        if newest is None:
            return {}
        given = f"{config.name}@{newest}"
    try:
        path = registry.resolve(given)
    except UserError as error:
        raise UserError(
            error.message, where="training.warm_start.from", remedy=error.remedy
        ) from None
    told = read_record(path).get("warm_start") or {}
    if told.get("training") == own:
        return told.get("start", {})
    digest = digest_of(path)
    for version in reversed(registry.versions(config.name)):
        # After a rollback, production is the same model under another number.
        made = known_of(registry.path(config.name, version)).get("warm_start") or {}
        before = made.get("start") or {}
        same = made.get("training") == own and before.get("digest") == digest
        if same and (folder := before.get("path")) and Path(folder).is_dir():
            return before
    name = f"{path.parent.name}@{path.name}" if path.parent.parent == registry.root else str(path)
    return {"model": name, "path": str(path), "digest": digest}


def record(config: Config, start: Mapping[str, str], own: str) -> dict[str, Any]:
    """What ``regard.json`` says of it: the ``start``, and the ``training`` that took it."""
    if config.training.warm_start is None:
        return {}
    return {"warm_start": {"start": dict(start), "training": own}}
