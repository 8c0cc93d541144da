"""Small models in a registry, as the Pusher leaves them."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from components.pusher.push import push
from components.registry import Registry


def make_model(path: Path, weights: bytes) -> Path:
    (path / "variables").mkdir(parents=True)
    (path / "saved_model.pb").write_bytes(b"graph")
    (path / "variables" / "variables.data-00000-of-00001").write_bytes(weights)
    return path


def push_models(root: Path, count: int, **record: Any) -> Registry:
    """A registry with versions 1 to ``count`` of ``m``; the weights of each are its number."""
    for number in range(1, count + 1):
        push_model(root, number, run=f"r{number}", **record)
    return Registry(root)


def push_model(root: Path, weights: int, **record: Any) -> tuple[int, bool]:
    model = make_model(root.parent / f"model-{uuid.uuid4().hex}", b"%d" % weights)
    return push(model, root, "m", {"recipe": f"recipe-{weights}", **record})


def weights_of(registry: Registry, version: int | None = None) -> int:
    """Which model a version is; that of production where none is given."""
    folder = registry.path("m", registry.number("m", version))
    return int((folder / "variables" / "variables.data-00000-of-00001").read_bytes())
