"""What is wrong with an executor: the kinds that do not run, and what is lost of those that do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pipeline.kubeflow.lint.document import Path
from pipeline.kubeflow.lint.fault import FAILS, IGNORED, Fault
from pipeline.kubeflow.storage import FOLDERS

TFX_ENTRY_POINT = "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"
_KINDS = {
    "resolver": (
        "a resolver, which only Google's Vertex AI runs",
        "Let a node look for the artifact itself, such as in a model registry, or import it.",
    ),
    "customJob": (
        "a custom job, which only Google's Vertex AI runs",
        "Let the node run in a container.",
    ),
}
_UNREACHED = re.compile(r"\b(minio|s3a?|hdfs|viewfs)://[^\s\"'\\]*")
_AMOUNTS = ("cpuLimit", "memoryLimit", "cpuRequest", "memoryRequest")
_QUANTITIES = tuple(f"resource{name[0].upper()}{name[1:]}" for name in _AMOUNTS)
_RESOURCE = re.compile(r"[a-z0-9.-]+/[A-Za-z0-9._-]+")
# Beside the stores: images of models, which are mounted, and models of Hugging Face.
_IMPORTED = (*FOLDERS, "oci", "huggingface")


def executor_faults(executor: dict[str, Any], path: Path, takes: bool) -> Iterator[Fault]:
    """Yields what is wrong with an executor.

    Args:
        executor: what stands under its label.
        path: where it stands.
        takes: whether its component takes artifacts.
    """
    for kind, (what, remedy) in _KINDS.items():
        if kind in executor:
            yield Fault("executor", (*path, kind), f"this is {what}", remedy)
            return
    if "importer" in executor:
        yield from _importer_faults(executor["importer"], (*path, "importer"))
    elif "container" in executor:
        yield from _container_faults(executor["container"], (*path, "container"), takes)
    else:
        message = "this is neither a container nor an importer"
        yield Fault("executor", path, message, "Give it a container.")


def store_faults(executor: dict[str, Any], task: dict[str, Any], path: Path) -> Iterator[Fault]:
    """Yields the stores that TFX's own executors are sent to, and cannot reach.

    Args:
        executor: what the task runs.
        task: with the constants that it gives.
        path: where the task stands.
    """
    if TFX_ENTRY_POINT not in executor.get("container", {}).get("command", []):
        return
    for key, source in task.get("inputs", {}).get("parameters", {}).items():
        value = source.get("runtimeValue", {}).get("constant")
        if isinstance(value, str) and (found := _UNREACHED.search(value)):
            message = f"{found[0]!r} is of a store that TFX has no client of"
            remedy = "Put it on a volume that the nodes mount, or into an image with a plugin of "
            remedy += "TensorFlow for the store."
            where = (*path, "inputs", "parameters", key)
            yield Fault("storage", where, message, remedy, FAILS)


def _importer_faults(importer: dict[str, Any], path: Path) -> Iterator[Fault]:
    uri = importer.get("artifactUri", {}).get("constant")
    scheme = uri.partition("://")[0] if isinstance(uri, str) and "://" in uri else None
    if isinstance(uri, str) and scheme not in _IMPORTED:
        schemes = ", ".join(f"{scheme}://" for scheme in _IMPORTED)
        message = f"{uri!r} is of no store that the launcher knows, so no node will find it"
        remedy = f"Put it behind one of {schemes}, or on a volume that the nodes mount."
        yield Fault("storage", (*path, "artifactUri"), message, remedy, IGNORED)


def _container_faults(container: dict[str, Any], path: Path, takes: bool) -> Iterator[Fault]:
    if not container.get("image"):
        yield Fault("image", (*path, "image"), "there is no image", "Name one.")
    command = [*container.get("command", []), *container.get("args", [])]
    if not command:
        message = "neither command nor args; the image's own entry point is not used"
        remedy = "Give a command."
        yield Fault("command", path, message, remedy, FAILS)
    if TFX_ENTRY_POINT in container.get("command", []) and takes:
        message = "TFX's own entry point cannot read input artifacts: the launcher leaves their "
        message += "types empty, and TFX knows no minio:// or s3://"
        remedy = "Set default_commands of KubeflowV2DagRunnerConfig to one that rewrites them, as "
        remedy += "`regard compile` does."
        yield Fault("entry-point", (*path, "command"), message, remedy, FAILS)
    if hook := container.get("lifecycle", {}).get("preCacheCheck"):
        message = "the driver in lifecycle.preCacheCheck is never run"
        if any("file_based_example_gen" in part for part in hook.get("command", [])):
            message += ", so spans, versions and fingerprints of files are not resolved"
        remedy = "Do in the node what the driver did."
        yield Fault("driver", (*path, "lifecycle", "preCacheCheck"), message, remedy, IGNORED)
    yield from _resource_faults(container.get("resources", {}), (*path, "resources"))


def _resource_faults(resources: dict[str, Any], path: Path) -> Iterator[Fault]:
    accelerator = resources.get("accelerator", {})
    kind = accelerator.get("resourceType") or accelerator.get("type")
    if kind and "{{" not in kind and not _RESOURCE.fullmatch(kind):
        message = f"{kind!r} is no resource of Kubernetes"
        remedy = "Use the name that the nodes of the cluster announce, such as nvidia.com/gpu."
        yield Fault("accelerator", (*path, "accelerator"), message, remedy, FAILS)
    count = accelerator.get("resourceCount") or accelerator.get("count")
    if bool(kind) != bool(count and str(count) != "0"):
        message = "an accelerator's type and count go together; so none is asked for"
        remedy = "Give both, such as nvidia.com/gpu and 1."
        yield Fault("accelerator", (*path, "accelerator"), message, remedy, IGNORED)
    for name in (*_AMOUNTS, *_QUANTITIES):
        if str(resources.get(name, "")).startswith("-"):
            message = f"{resources[name]} is less than nothing"
            yield Fault("resources", (*path, name), message, "Ask for more than 0.", FAILS)
    for name in ("cpu", "memory"):
        request, limit = resources.get(f"{name}Request"), resources.get(f"{name}Limit")
        if request and limit and request > limit:
            message = f"{request:g} is asked for, and {limit:g} is the limit"
            yield Fault("resources", (*path, f"{name}Request"), message, "Ask for no more.", FAILS)
