"""Read a configuration for a cluster, and warn about what its nodes may not find."""

import importlib
import os
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from regard.components.common.runtime_parameters import Value, parameters_of
from regard.components.settings.trainer import NODE
from regard.core.errors import ConfigError, EnvironmentFault, UserError
from regard.pipeline.config import Config, load
from regard.pipeline.config.kubeflow import KubeflowConfig
from regard.pipeline.config.kubeflow_checks import input_paths

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
            importlib.import_module(name)
        except ModuleNotFoundError:
            raise EnvironmentFault(
                f"Kubeflow Pipelines needs the package {name.partition('.')[0]}, which is not "
                "installed.",
                remedy="Install it: pip install 'regard[kubeflow]'",
            ) from None


def load_for_cluster(path: str | os.PathLike[str], options: Sequence[str] = ()) -> Config:
    """Load a configuration with the cluster's folder as ``${REGARD_HOME}``.

    Args:
        path: the YAML file.
        options: the values of ``--set``, ``KEY=VALUE``.

    Raises:
        UserError: the file is invalid, has no section ``kubeflow``, or needs something that a
            cluster does not have.
    """
    local = load(path, options=options)
    if local.kubeflow is None:
        raise ConfigError(
            "The configuration has no section kubeflow.", f"{path}: kubeflow", _REMEDY
        )
    config = load(path, local.kubeflow.home, options)
    trainer = kubeflow_section(config).pod_of(NODE)
    if config.training.devices == "workers" and "TF_CONFIG" not in trainer.environment:
        message = "The other workers of the training need the address of the Trainer."
        remedy = "Set kubeflow.pods.Trainer.environment.TF_CONFIG (docs/how-to/kubeflow.md), or "
        remedy += "training.devices to all, and kubeflow.resources.Trainer.gpu to the number of "
        remedy += "GPUs of one machine."
        raise UserError(message, f"{path}: training.devices", remedy)
    if config.beam.runner == "dataflow":
        message = "Dataflow's workers mount no volume of the cluster."
        remedy = "Set beam.runner to in_process or processes, which run inside each node, or to "
        remedy += "flink, spark or portable, whose workers mount the volume."
        raise UserError(message, f"{path}: beam.runner", remedy)
    return config


def kubeflow_section(config: Config) -> KubeflowConfig:
    """Return the section ``kubeflow`` of a configuration for a cluster."""
    assert config.kubeflow is not None
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
            f"kubeflow.resources: GPUs for {', '.join(gpu_nodes)}, but kubeflow.gpu_image is not "
            "set. kubeflow.image must contain the GPU libraries."
        )
    for key, path in input_paths(config):
        if not path.startswith(("/", "~")):
            continue  # relative to data.root
        if not kubeflow.is_on_volume(PurePosixPath(path)):
            name = ".".join(map(str, key))
            yield f"{name}: {path} is on no volume of kubeflow.volumes. The image must contain it."
