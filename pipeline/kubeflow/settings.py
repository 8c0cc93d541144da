"""What a configuration says about its cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from components.errors import UserError
from components.parameters import PARAMETERS
from pipeline.config import load

if TYPE_CHECKING:
    from pipeline.config import Config
    from pipeline.config.kubeflow import Kubeflow

_REMEDY = (
    "Add to the file: kubeflow: {image: registry.example.org/regard:0.1.0, volumes: {regard: "
    "/regard}}. `regard config reference` explains every key."
)


def load_for_cluster(path: str | os.PathLike[str]) -> Config:
    """Reads a pipeline's YAML file with the cluster's folder as ``${REGARD_HOME}``.

    Raises:
        UserError: as ``load`` does; the file says nothing about a cluster, or wants workers.
    """
    config = load(path, home=section(load(path), str(path)).home)
    if config.training.devices == "workers":
        raise UserError(
            "a node of Kubeflow Pipelines is one container, which has no other workers",
            where=f"{path}: training.devices",
            remedy="Use training.devices: all, and as many GPUs for the Trainer as a machine has: "
            "kubeflow.resources.Trainer.gpu.",
        )
    return config


def section(config: Config, where: str | None = None) -> Kubeflow:
    """The section ``kubeflow``.

    Args:
        config: the pipeline's.
        where: what it was read from; default: its name.

    Raises:
        UserError: there is none.
    """
    if config.kubeflow is None:
        message = "it says nothing about a cluster"
        raise UserError(message, where or f"pipeline {config.name}", _REMEDY)
    return config.kubeflow


def parameters_of(config: Config) -> dict[str, int]:
    """The parameters of a run, each with the value that it has in the configuration."""
    plain = config.model_dump(mode="json")
    return {name: parameter.compiled(plain) for name, parameter in PARAMETERS.items()}


def notes(config: Config) -> Iterator[str]:
    """Yields what the nodes may not find: paths that are on no volume, and CUDA's libraries."""
    kubeflow = section(config)
    asking = [name for name in kubeflow.resources if kubeflow.resources_of(name).gpu]
    if asking and kubeflow.gpu_image is None:
        yield (
            f"kubeflow.resources: {', '.join(asking)}: accelerators without kubeflow.gpu_image; "
            "kubeflow.image must hold their libraries"
        )
    mounted = [PurePosixPath(folder) for folder in kubeflow.volumes.values()]
    for key, path in _paths(config):
        place = PurePosixPath(path)
        if not any(volume in (place, *place.parents) for volume in mounted):
            yield f"{key}: {path} is on no volume of kubeflow.volumes; the image must hold it"


def _paths(config: Config) -> Iterator[tuple[str, str]]:
    yield "data.root", config.data.root
    if config.tokenizer is not None and config.tokenizer.words is not None:
        yield "tokenizer.words", config.tokenizer.words
    pretrained = getattr(config.model, "pretrained", None)
    for key, path in (pretrained.files() if pretrained else {}).items():
        yield f"model.pretrained.{key}", path
