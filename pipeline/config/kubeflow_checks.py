"""Checks on the section ``kubeflow`` that need the whole configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from regard.components.data.config_rules import path_locations
from regard.models.settings.base import Path, Problem
from regard.pipeline.config.config import Config
from regard.pipeline.config.errors import show, unknown
from regard.pipeline.config.kubeflow import DEFAULT, KubeflowConfig

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
    for name in kubeflow.resources:
        if name not in (names := (DEFAULT, *config.nodes)):
            yield Problem(("kubeflow", "resources", name), unknown(name, names, "a node"))
    yield from _check_folders(kubeflow)
    if config.serving.registry is not None and kubeflow.registry is None:
        yield Problem(("serving", "registry"), "has no effect on a cluster; use kubeflow.registry")


def input_paths(config: Config) -> Iterator[tuple[Path, str]]:
    """Yield every path that a node reads, as written in the configuration, with its key."""
    data = config.data
    paths: dict[Path, str | None] = {("data", "root"): data.root, ("data", "images"): data.images}
    if config.tokenizer is not None:
        paths["tokenizer", "word_list"] = config.tokenizer.word_list
    if pretrained := getattr(config.model, "pretrained", None):
        paths |= {("model", "pretrained", name): path for name, path in pretrained.files().items()}
    yield from ((key, path) for key, path in paths.items() if path is not None)
    yield from ((location.path, location.pattern) for location in path_locations(data))


def _check_folders(kubeflow: KubeflowConfig) -> Iterator[Problem]:
    """A volume must not hide folders that the nodes need; home and registry must be on one."""
    folders = list(kubeflow.volumes.values())
    for index, (claim, folder) in enumerate(kubeflow.volumes.items()):
        path, mount = ("kubeflow", "volumes", claim), PurePosixPath(folder)
        if folder in folders[:index]:
            yield Problem(path, f"{show(folder)} is already the folder of another volume")
        for reserved in (*_SYSTEM, *_STORES):
            is_inside = reserved in _STORES and PurePosixPath(reserved) in mount.parents
            if is_inside or mount in (PurePosixPath(reserved), *PurePosixPath(reserved).parents):
                message = (
                    f"{show(folder)} would hide files in {reserved}; use for example /mnt/{claim}"
                )
                yield Problem(path, message)
                break
    for name, folder in (("home", kubeflow.home), ("registry", kubeflow.registry_folder)):
        if not kubeflow.is_on_volume(PurePosixPath(folder)):
            message = f"no volume contains {folder}; mount one with kubeflow.volumes"
            yield Problem(("kubeflow", name), message)
            return
