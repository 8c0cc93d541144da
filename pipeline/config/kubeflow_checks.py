"""Checks on the section ``kubeflow`` that need the whole configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from regard.models.settings.base import Path, Problem
from regard.pipeline.config.config import Config
from regard.pipeline.config.errors import show, suggest
from regard.pipeline.config.kubeflow import DEFAULT, KubeflowConfig
from regard.pipeline.config.nodes import nodes_of

# Folders that the image needs, and those to which the launcher copies artifacts.
_SYSTEM = (
    *("/bin", "/dev", "/etc", "/lib", "/lib64", "/opt/regard", "/proc", "/sbin", "/sys", "/tmp"),
    *("/usr", "/var/run/argo"),
)
_STORES = ("/.cache", "/.local", "/gcs", "/kfp-launcher", "/minio", "/s3")


def validate_kubeflow(config: Config) -> Iterator[Problem]:
    """Yield what cannot work on a cluster, if the configuration has one."""
    if (kubeflow := config.kubeflow) is None:
        return
    names = (DEFAULT, *nodes_of(bool(config.description.text_features)))
    for name in kubeflow.resources:
        if name not in names:
            path = ("kubeflow", "resources", name)
            yield Problem(path, f"{show(name)} is not a node{suggest(name, names)}")
    yield from _check_accelerators(kubeflow)
    yield from _check_mounts(kubeflow)
    yield from _check_folders(kubeflow)
    if config.serving.registry is not None and kubeflow.registry is None:
        message = "has no effect on a cluster; set kubeflow.registry instead"
        yield Problem(("serving", "registry"), message)
    for key, value in input_paths(config):
        if "://" in value:
            message = f"{show(value)} is a URL, but nodes read local files only; copy the files to "
            yield Problem(key, f"{message}a volume of kubeflow.volumes")


def input_paths(config: Config) -> Iterator[tuple[Path, str]]:
    """Yield every path that a node reads, as written in the configuration, with its key."""
    yield ("data", "root"), config.data.root
    for name, files in config.data.files_by_split().items():
        sides = files if isinstance(files, dict) else {None: files}
        for side, entry in sides.items():
            key = ("data", name) if side is None else ("data", name, side)
            for path in [entry] if isinstance(entry, str) else entry:
                yield key, path
    if config.data.images is not None:
        yield ("data", "images"), config.data.images
    if config.tokenizer is not None and config.tokenizer.word_list is not None:
        yield ("tokenizer", "word_list"), config.tokenizer.word_list
    pretrained = getattr(config.model, "pretrained", None)
    for key, path in (pretrained.files() if pretrained else {}).items():
        yield ("model", "pretrained", key), path


def _check_accelerators(kubeflow: KubeflowConfig) -> Iterator[Problem]:
    """The kind of an accelerator has no effect without a count."""
    counts = {name: kubeflow.resources_of(name).gpu for name in kubeflow.resources}
    for name, resources in kubeflow.resources.items():
        has_gpu = any(counts.values()) if name == DEFAULT else counts[name]
        if resources.accelerator is not None and not has_gpu:
            path = ("kubeflow", "resources", name, "accelerator")
            yield Problem(path, "no accelerator is requested; set gpu to their number")


def _check_mounts(kubeflow: KubeflowConfig) -> Iterator[Problem]:
    mounted: list[PurePosixPath] = []
    for claim, folder in kubeflow.volumes.items():
        key, mount = ("kubeflow", "volumes", claim), PurePosixPath(folder)
        if mount in mounted:
            yield Problem(key, f"{show(folder)} is already the folder of another volume")
        mounted.append(mount)
        for reserved in (*_SYSTEM, *_STORES):
            is_inside = reserved in _STORES and PurePosixPath(reserved) in mount.parents
            if is_inside or mount in (PurePosixPath(reserved), *PurePosixPath(reserved).parents):
                message = f"{show(folder)} would hide {reserved}, which the nodes need"
                if is_inside:
                    message = f"{show(folder)} is where Kubeflow's launcher copies artifacts"
                yield Problem(key, f"{message}; mount it elsewhere, for example at /mnt/{claim}")
                break


def _check_folders(kubeflow: KubeflowConfig) -> Iterator[Problem]:
    """Home and registry must be on a volume, and no path may contain ``.`` or ``..``."""
    folders: list[tuple[Path, str]] = [(("kubeflow", "home"), kubeflow.home)]
    folders.append((("kubeflow", "registry"), kubeflow.registry_folder))
    volumes = [(("kubeflow", "volumes", claim), path) for claim, path in kubeflow.volumes.items()]
    for key, folder in (*folders, *volumes):
        if {".", ".."} & set(folder.split("/")):  # PurePosixPath.parts omits dots
            yield Problem(key, f"{show(folder)} contains . or ..; write the path in full")
            return
    for key, folder in folders:
        if not kubeflow.is_on_volume(PurePosixPath(folder)):
            message = f"no volume contains {folder}, so files there would be lost with the node"
            yield Problem(key, f"{message}; mount one with kubeflow.volumes")
            return
