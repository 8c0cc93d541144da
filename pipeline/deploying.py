"""Rendering the files of a deployment for a model of the registry, and writing them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from components.errors import UserError
from components.files import atomic_write
from components.registry import Registry, read_record
from pipeline import deployment
from serving import ops
from serving.saved_model import CONTRACT

_NEXT = {
    "compose": "docker compose -f {folder}/compose.yaml up",
    "kubernetes": "kubectl apply -k {folder}",
    "kserve": "kubectl apply -f {folder}/inference_service.yaml",
}
_CLAIM = "pvc://regard-registry"


@dataclasses.dataclass(frozen=True)
class Rendered:
    """What a deployment takes.

    Attributes:
        files: their texts by name.
        notes: what must be there before; a line each.
        next: the command that applies them, ``{folder}`` in it.
    """

    files: dict[str, str]
    notes: list[str]
    next: str


def render(
    model: str, registry: Path, target: str, *, storage: str | None = None, **settings: Any
) -> Rendered:
    """The files that serve a model, after a look at whether the server can run it.

    Args:
        model: ``NAME`` or ``NAME@VERSION``.
        registry: the registry's folder.
        target: one of ``pipeline.deployment.TARGETS``.
        storage: the registry as the server sees it; None: the folder itself, or a claim.
        settings: the other attributes of ``pipeline.deployment.Deployment``.

    Raises:
        UserError: there is no such model, a setting cannot be, or the image's TensorFlow Serving
            lacks an operation of the model.
    """
    found = Registry(registry)
    name, _, pinned = model.partition("@")
    if Path(name).name != name or not name.strip("."):
        raise UserError(
            f"{name!r} is no model of the registry",
            where=str(registry),
            remedy="Give its name; --registry for another registry.",
        )
    version = found.resolve(model)
    plan = deployment.Deployment(
        name=name,
        storage=storage or (str(registry.resolve()) if target == "compose" else _CLAIM),
        version=int(version.name) if pinned else None,
        batching=not _takes_points(version),
        **settings,
    )
    _check_operations(version, plan.image_version)
    files = deployment.render(plan, target)
    return Rendered(files, _notes(plan, target), _NEXT[target])


def write(files: dict[str, str], folder: Path, *, force: bool = False) -> None:
    """Writes the files into a folder, which is made; what else lies there stays.

    Raises:
        UserError: one is there already and says something else; none is written then.
    """
    for name, text in files.items():
        path = folder / name
        if not force and path.exists() and path.read_text(encoding="utf-8") != text:
            raise UserError(
                "there is such a file already, and it says something else",
                where=str(path),
                remedy="--force to replace it, or --out for another folder.",
            )
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        atomic_write(folder / name, text)


def _check_operations(version: Path, server: str) -> None:
    """Whether the server has all operations of the model, unless the model was pushed for it.

    Raises:
        UserError: it has not, or nobody knows.
    """
    pushed_for = read_record(version).get("config", {}).get("serving", {}).get("tf_serving", ())
    if any(server == known or server.startswith(f"{known}.") for known in pushed_for):
        return
    used = ops.used_ops(version)
    try:
        missing = ops.unsupported(used, ops.core_ops(used), server)
    except ValueError as error:
        raise UserError(str(error), where="image") from error
    if missing:
        raise UserError(
            f"TensorFlow Serving {server} cannot run the model: it has no operation"
            f" {', '.join(missing)}",
            where=str(version),
            remedy="Take an image of a newer version.",
        )


def _takes_points(version: Path) -> bool:
    """Whether the model's inputs differ in shape from row to row."""
    path = version / CONTRACT
    if not path.is_file():
        return False
    contract = json.loads(path.read_text(encoding="utf-8"))
    return any(entry["kind"] == "points" for entry in contract["inputs"])


def _notes(plan: deployment.Deployment, target: str) -> list[str]:
    notes = []
    if plan.storage.startswith("pvc://"):
        claim, _, folder = plan.storage.removeprefix("pvc://").partition("/")
        inside = f"{folder.rstrip('/')}/{plan.name}" if folder else plan.name
        notes.append(
            f"needs  the claim {claim!r} in the namespace {plan.namespace!r}, with the versions"
            f" under {inside}/, to be read by several pods (ReadOnlyMany or ReadWriteMany) and by"
            " any user"
        )
    if target == "kubernetes":
        notes.append("needs  a metrics server, for the autoscaler")
    return notes
