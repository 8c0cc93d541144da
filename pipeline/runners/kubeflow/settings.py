"""Read a configuration for a cluster, and warn about what its nodes may not find."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from regard.components.common.errors import UserError
from regard.components.common.runtime_parameters import Value, parameters_of
from regard.pipeline.config import load
from regard.pipeline.config.kubeflow_checks import input_paths

if TYPE_CHECKING:
    from regard.pipeline.config import Config
    from regard.pipeline.config.kubeflow import KubeflowConfig

_MODULES = ("kfp.pipeline_spec", "kfp_server_api")
_REMEDY = (
    "Add to the file: kubeflow: {image: registry.example.org/regard:0.1.0, volumes: {regard: "
    "/regard}}. `regard config reference` explains every key."
)


def require_kubeflow_extra() -> None:
    """Check that the optional dependencies are installed.

    Raises:
        UserError: a package is missing.
    """
    for name in _MODULES:
        try:
            is_missing = importlib.util.find_spec(name) is None
        except ModuleNotFoundError:  # its parent package is missing
            is_missing = True
        if is_missing:
            raise UserError(
                f"Kubeflow Pipelines needs the package {name.partition('.')[0]}, which is not "
                "installed.",
                remedy="Install it: pip install 'regard[kubeflow]'",
            )


def load_for_cluster(path: str | os.PathLike[str]) -> Config:
    """Load a configuration with the cluster's folder as ``${REGARD_HOME}``.

    Raises:
        UserError: the file is invalid, has no section ``kubeflow``, or trains on several machines.
    """
    config = load(path, home=kubeflow_section(load(path), str(path)).home)
    if config.training.devices == "workers":
        raise UserError(
            "A node of Kubeflow Pipelines is one container and cannot train on several machines.",
            where=f"{path}: training.devices",
            remedy="Set training.devices to all, and kubeflow.resources.Trainer.gpu to the number "
            "of GPUs of one machine.",
        )
    return config


def kubeflow_section(config: Config, where: str | None = None) -> KubeflowConfig:
    """Return the section ``kubeflow``.

    Args:
        config: the configuration.
        where: the file it was read from, for the error message.

    Raises:
        UserError: there is none.
    """
    if config.kubeflow is None:
        message = "The configuration has no section kubeflow."
        raise UserError(message, where or f"pipeline {config.name}", _REMEDY)
    return config.kubeflow


def run_parameters(config: Config) -> dict[str, Value]:
    """Return the parameters of a run, each with its value in the configuration."""
    return parameters_of(config.model_dump(mode="json"), config.data.has_spans)


def cluster_warnings(config: Config) -> Iterator[str]:
    """Yield warnings on paths outside every volume, and on GPUs without an image for them."""
    kubeflow = kubeflow_section(config)
    gpu_nodes = [name for name in kubeflow.resources if kubeflow.resources_of(name).gpu]
    if gpu_nodes and kubeflow.gpu_image is None:
        yield (
            f"kubeflow.resources: {', '.join(gpu_nodes)} request GPUs, but kubeflow.gpu_image is "
            "not set. kubeflow.image must contain the GPU libraries."
        )
    for key, path in input_paths(config):
        if not path.startswith(("/", "~")):
            continue  # relative to data.root
        if not kubeflow.is_on_volume(PurePosixPath(path)):
            name = ".".join(map(str, key))
            yield f"{name}: {path} is on no volume of kubeflow.volumes. The image must contain it."
