"""What a configuration says about its cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from components.errors import UserError
from components.parameters import Value, parameters_of
from pipeline.config import load
from pipeline.config.kubeflow_checks import paths

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
        UserError: as ``load`` does; the file says nothing about a cluster.
    """
    return load(path, home=section(load(path), str(path)).home)


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


def run_parameters(config: Config) -> dict[str, Value]:
    """The parameters of a run, each with the value that it has in the configuration."""
    return parameters_of(config.model_dump(mode="json"), config.data.has_spans)


def notes(config: Config) -> Iterator[str]:
    """Yields what the nodes may not find: paths that are on none of the volumes."""
    mounted = [PurePosixPath(folder) for folder in section(config).volumes.values()]
    for key, path in paths(config):
        place = PurePosixPath(path)
        if not place.is_absolute() and not path.startswith("~"):
            continue  # it is below data.root
        if not any(volume in (place, *place.parents) for volume in mounted):
            name = ".".join(map(str, key))
            yield f"{name}: {path} is on no volume of kubeflow.volumes; the image must hold it"
