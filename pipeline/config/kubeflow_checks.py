"""What cannot work on a cluster, found before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from models.settings.base import Path, Problem
from pipeline.config.errors import show, suggest
from pipeline.config.kubeflow import DEFAULT, Kubeflow
from pipeline.config.sections import Config
from pipeline.nodes import nodes_of

# What the image needs, and what the launcher copies artifacts to.
_SYSTEM = (
    *("/bin", "/dev", "/etc", "/lib", "/lib64", "/opt/regard", "/proc", "/sbin", "/sys", "/tmp"),
    *("/usr", "/var/run/argo"),
)
_STORES = ("/.cache", "/.local", "/gcs", "/kfp-launcher", "/minio", "/s3")


def impossible_kubeflow(config: Config) -> Iterator[Problem]:
    """Yields what cannot work on the cluster of a configuration, if it has one."""
    if (kubeflow := config.kubeflow) is None:
        return
    names = (DEFAULT, *nodes_of(bool(config.description.text_features)))
    for name in kubeflow.resources:
        if name not in names:
            path = ("kubeflow", "resources", name)
            yield Problem(path, f"{show(name)} is no node{suggest(name, names)}")
    yield from _accelerators(kubeflow)
    yield from _mounts(kubeflow)
    yield from _places(kubeflow)
    if config.serving.registry is not None and kubeflow.registry is None:
        message = "is not read on a cluster; say with kubeflow.registry where the models go there"
        yield Problem(("serving", "registry"), message)
    for key, value in paths(config):
        if "://" in value:
            message = f"{show(value)} is in a store, and the nodes read local folders alone; put "
            yield Problem(key, f"{message}the files on a volume of kubeflow.volumes")


def _accelerators(kubeflow: Kubeflow) -> Iterator[Problem]:
    """An accelerator is asked for by its count, so a kind alone asks for nothing."""
    asked = {name: kubeflow.resources_of(name).gpu for name in kubeflow.resources}
    for name, resources in kubeflow.resources.items():
        some = any(asked.values()) if name == DEFAULT else asked[name]
        if resources.accelerator is not None and not some:
            path = ("kubeflow", "resources", name, "accelerator")
            yield Problem(path, "none of them is asked for; say how many with gpu")


def _mounts(kubeflow: Kubeflow) -> Iterator[Problem]:
    mounted: list[PurePosixPath] = []
    for claim, folder in kubeflow.volumes.items():
        key, place = ("kubeflow", "volumes", claim), PurePosixPath(folder)
        if place in mounted:
            yield Problem(key, f"{show(folder)} is the folder of another volume, too")
        mounted.append(place)
        for taken in (*_SYSTEM, *_STORES):
            inside = taken in _STORES and PurePosixPath(taken) in place.parents
            if inside or place in (PurePosixPath(taken), *PurePosixPath(taken).parents):
                message = f"{show(folder)} would hide {taken}, which the nodes need"
                if inside:
                    message = f"{show(folder)} is where Kubeflow's launcher copies artifacts to"
                yield Problem(key, f"{message}; mount it elsewhere, such as at /mnt/{claim}")
                break


def _places(kubeflow: Kubeflow) -> Iterator[Problem]:
    """Home and registry are on a volume, by paths that lead where they seem to."""
    folders: list[tuple[Path, str]] = [(("kubeflow", "home"), kubeflow.home)]
    folders.append((("kubeflow", "registry"), kubeflow.served))
    volumes = {("kubeflow", "volumes", claim): path for claim, path in kubeflow.volumes.items()}
    for key, folder in (*folders, *volumes.items()):
        # The path's own parts leave out a dot.
        if {".", ".."} & set(folder.split("/")):
            yield Problem(key, f"{show(folder)} has a dot for a folder; write the path out")
            return
    mounted = [PurePosixPath(folder) for folder in kubeflow.volumes.values()]
    for key, folder in folders:
        place = PurePosixPath(folder)
        if not any(volume in (place, *place.parents) for volume in mounted):
            message = f"no volume holds {folder}, so what is written there would go with the node"
            yield Problem(key, f"{message}; mount one with kubeflow.volumes")
            return


def paths(config: Config) -> Iterator[tuple[Path, str]]:
    """Every path of a configuration that a node reads, as it is written, with its key."""
    yield ("data", "root"), config.data.root
    for name, files in config.data.parts().items():
        sides = files if isinstance(files, dict) else {None: files}
        for side, named in sides.items():
            key = ("data", name) if side is None else ("data", name, side)
            for path in [named] if isinstance(named, str) else named:
                yield key, path
    if config.data.images is not None:
        yield ("data", "images"), config.data.images
    if config.tokenizer is not None and config.tokenizer.words is not None:
        yield ("tokenizer", "words"), config.tokenizer.words
    pretrained = getattr(config.model, "pretrained", None)
    for key, path in (pretrained.files() if pretrained else {}).items():
        yield ("model", "pretrained", key), path
