"""Small models in a registry, as the Pusher writes them."""

import json
import os
import uuid
from pathlib import Path
from typing import Any

from regard.components.registry.publish import push
from regard.components.registry.records import VersionRecord
from regard.components.registry.store import Registry
from regard.serving.contract import CONTRACT, Contract


def make_model(path: Path, weights: bytes) -> Path:
    (path / "variables").mkdir(parents=True)
    (path / "fingerprint.pb").write_bytes(os.urandom(8))  # every export has another one
    (path / "saved_model.pb").write_bytes(b"graph")
    (path / "variables" / "variables.data-00000-of-00001").write_bytes(weights)
    return path


def push_models(root: Path, count: int, **record: Any) -> Registry:
    """Return a registry with versions 1 to ``count`` of ``m``, whose weights are their number."""
    for number in range(1, count + 1):
        push_model(root, number, run=f"r{number}", **record)
    return Registry(root)


def push_model(root: Path, weights: int, **record: Any) -> tuple[int, bool]:
    model = make_model(root.parent / f"model-{uuid.uuid4().hex}", b"%d" % weights)
    fields = {"recipe": f"recipe-{weights}", **record}
    return push(model, root, "m", VersionRecord.model_validate(fields))


def write_version(home: Path, number: int, name: str = "tiny", **record: Any) -> Path:
    """Write a version of a model below a workspace, and return its folder."""
    folder = home / "registry" / name / str(number)
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"model %d" % number)
    (folder / "regard.json").write_text(json.dumps(record))
    return folder


def write_contract(folder: Path, task: str) -> None:
    """Write the smallest contract that can be read into the folder of a model."""
    contract = {
        **dict.fromkeys(Contract.__required_keys__),
        "task": task,
        "answer_kind": "text",
        "inputs": [],
        "signatures": {},
    }
    path = folder / CONTRACT
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(contract))


def weights_of(registry: Registry, version: int | None = None) -> int:
    """Return the weights of a version, by default of the live one."""
    folder = registry.path("m", registry.number("m", version))
    return int((folder / "variables" / "variables.data-00000-of-00001").read_bytes())
