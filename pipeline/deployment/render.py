"""Render the deployment of a model in the registry, and write its files."""

import hashlib
import json
from pathlib import Path
from typing import Any

from regard.components.registry.records import read_record
from regard.components.registry.store import Registry
from regard.core.errors import UserError
from regard.core.files import atomic_write
from regard.pipeline.deployment import manifests
from regard.serving import supported_ops
from regard.serving.contract import CONTRACT, input_kinds

# The commands that apply the files.
NEXT = {
    "compose": "docker compose -f {folder}/compose.yaml up",
    "kubernetes": "kubectl apply -k {folder}",
    "kserve": "kubectl apply -f {folder}/inference_service.yaml",
}
_CLAIM = "pvc://regard-registry"


def render(
    model: str, registry: Path, target: str, *, storage: str | None = None, **settings: Any
) -> tuple[dict[str, str], list[str]]:
    """Render the files that serve a model, if the server supports its operations.

    Args:
        model: ``NAME`` or ``NAME@VERSION``.
        registry: the registry's folder.
        target: one of ``regard.pipeline.deployment.manifests.TARGETS``.
        storage: the registry as the server sees it; None: the folder itself, or a claim.
        settings: the other attributes of ``regard.pipeline.deployment.manifests.Deployment``.

    Returns:
        The texts by file name, and what must exist before they are applied, one line each.

    Raises:
        UserError: there is no such model, a setting is invalid, or the image's TensorFlow Serving
            lacks an operation of the model.
    """
    store = Registry(registry)
    name, _, pinned = model.partition("@")
    if Path(name).name != name or not name.strip("."):
        remedy = "Give a name in the registry; --registry selects another registry."
        raise UserError(f"{name!r} is not the name of a model.", str(registry), remedy)
    version, is_folder = store.resolve(model), store.mirror is None
    plan = manifests.Deployment(
        name=name,
        storage=storage or (_CLAIM if is_folder and target != "compose" else store.location()),
        version=int(version.name) if pinned else None,
        batching=not _takes_points(version),
        **settings,
    )
    if plan.quantization is None:
        _check_operations(version, plan.image_version)
    return manifests.render(plan, target), _requirements(plan, target)


def write(files: dict[str, str], folder: Path, *, force: bool = False) -> None:
    """Write the files to a folder; other files in it are not changed.

    The last line of each file is a comment with the digest of the text before it, so that a file
    that nobody has modified can be replaced.

    Raises:
        UserError: files have been modified; then nothing is written.
    """
    signed = {folder / name: _sign(text) for name, text in files.items()}
    modified = [str(path) for path, text in signed.items() if _is_modified(path, text)]
    if modified and not force:
        remedy = "Use --force to replace what was modified, or --out for another folder."
        raise UserError("The file exists and has been modified.", ", ".join(modified), remedy)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in signed.items():
        atomic_write(path, text)


def _sign(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
    return f"{text}# regard deploy render: {digest}\n"


def _is_modified(path: Path, text: str) -> bool:
    """Return whether a file exists that is neither the text nor another one that was written."""
    if not path.exists():
        return False
    content = path.read_text(encoding="utf-8")
    lines = content.splitlines(keepends=True)
    return content != text and content != _sign("".join(lines[:-1]))


def _check_operations(version: Path, server: str) -> None:
    """Check the operations of the model, unless they were checked when it was published.

    Raises:
        UserError: the server lacks an operation, or its operations are not known.
    """
    checked_for = read_record(version).config.get("serving", {}).get("tf_serving_versions", ())
    if any(server == known or server.startswith(f"{known}.") for known in checked_for):
        return
    used = supported_ops.used_ops(version)
    try:
        missing = supported_ops.unsupported(used, supported_ops.core_ops(used), server)
    except ValueError as error:
        raise UserError(str(error), where="--image") from error
    if missing:
        raise UserError(
            f"TensorFlow Serving {server} cannot run the model: it lacks the"
            f" operations {', '.join(missing)}.",
            where=str(version),
            remedy="Use a newer image.",
        )


def _takes_points(version: Path) -> bool:
    """Return whether the shapes of the model's inputs differ from row to row."""
    path = version / CONTRACT
    contract = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"inputs": []}
    return any(kind.has_length for kind in input_kinds(contract).values())


def _requirements(plan: manifests.Deployment, target: str) -> list[str]:
    requirements = []
    if plan.storage.startswith("pvc://"):
        claim, _, folder = plan.storage.removeprefix("pvc://").partition("/")
        inside = f"{folder.rstrip('/')}/{plan.name}" if folder else plan.name
        requirements.append(
            f"needs  the claim {claim!r} in the namespace {plan.namespace!r}, with the versions"
            f" in {inside}/, readable by several pods (ReadOnlyMany or ReadWriteMany) and by any"
            " user"
        )
    if target == "kubernetes":
        requirements.append("needs  a metrics server, for the autoscaler")
    return requirements
