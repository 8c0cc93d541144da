"""A configuration to the file that Kubeflow Pipelines runs: a PipelineSpec 2.1 as YAML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from components.files import atomic_write
from components.parameters import PARAMETERS
from pipeline.kubeflow.settings import parameters_of, section
from pipeline.predicting import quiet

if TYPE_CHECKING:
    from pipeline.config import Config
    from pipeline.config.kubeflow import Kubeflow, Resources

COMMAND = ("python", "-m", "pipeline.kubeflow.container")
ACCELERATOR = "nvidia.com/gpu"


class _Plain(yaml.SafeDumper):
    """Writes what occurs twice twice: people read and edit these files."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def compiled(config: Config) -> list[dict[str, Any]]:
    """The YAML documents of a configuration: the pipeline and, with volumes, the platform.

    The same configuration and code always give the same documents.

    Raises:
        UserError: the configuration says nothing about a cluster.
    """
    kubeflow = section(config)
    with quiet():
        spec = _by_tfx(config, kubeflow)
    _give_defaults(spec, config)
    for label, executor in spec["deploymentSpec"]["executors"].items():
        executor["container"]["image"] = kubeflow.image_of(label.removesuffix("_executor"))
    if kubeflow.pipeline_root:
        spec["defaultPipelineRoot"] = kubeflow.pipeline_root
    return [spec, _platform(spec, kubeflow)] if kubeflow.volumes else [spec]


def _by_tfx(config: Config, kubeflow: Kubeflow) -> dict[str, Any]:
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as tfx_runner

    from pipeline.graph import pipeline_at
    from pipeline.kubeflow.place import cluster

    pipeline = pipeline_at(cluster(config), config)
    for node in pipeline.components:
        asked = _requested(kubeflow.resources_of(node.id))
        if asked.ByteSize():
            node.with_platform_config(asked)
    runner = tfx_runner.KubeflowV2DagRunner(
        tfx_runner.KubeflowV2DagRunnerConfig(
            default_image=kubeflow.image,
            default_commands=list(COMMAND),
            use_pipeline_spec_2_1=True,
        )
    )
    return runner.run(pipeline, write_out=False)["pipelineSpec"]


def write(documents: list[dict[str, Any]], path: Path) -> None:
    """Writes the documents as one file, whole or not at all."""
    spec = documents[0]
    head = [f"# Pipeline {spec['pipelineInfo']['name']}, compiled by `regard compile`."]
    for name, parameter in sorted(_parameters(spec).items()):
        default = f"{parameter['defaultValue']:g}"
        head.append(f"# Parameter {name} (default {default}): {parameter['description']}")
    body = yaml.dump_all(documents, Dumper=_Plain, sort_keys=True, allow_unicode=True)
    atomic_write(path, "\n".join(head) + "\n" + body)


def _requested(resources: Resources) -> Any:
    """What a node asks for, as TFX takes it."""
    from kfp.pipeline_spec import pipeline_spec_pb2

    container = pipeline_spec_pb2.PipelineDeploymentConfig.PipelineContainerSpec
    asked = container.ResourceSpec()
    if resources.cpu is not None:
        asked.cpu_request = asked.cpu_limit = resources.cpu
    if resources.memory is not None:
        asked.memory_request = asked.memory_limit = resources.memory
    if resources.gpu:
        asked.accelerator.type = resources.accelerator or ACCELERATOR
        asked.accelerator.count = resources.gpu
    return asked


def _parameters(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return spec["root"].get("inputDefinitions", {}).get("parameters", {})


def _give_defaults(spec: dict[str, Any], config: Config) -> None:
    """Puts the parameters' defaults in, which TFX leaves out: without one, each must be given."""
    defaults = parameters_of(config)
    for name, parameter in _parameters(spec).items():
        parameter["defaultValue"] = float(defaults[name])
        parameter["isOptional"] = True
        parameter["description"] = PARAMETERS[name].about


def _platform(spec: dict[str, Any], kubeflow: Kubeflow) -> dict[str, Any]:
    """The part of the file that Kubernetes alone is concerned with: the volumes of each node."""
    mounts = [
        {
            "mountPath": path,
            # Newer servers read the first, older ones the second.
            "pvcNameParameter": {"runtimeValue": {"constant": claim}},
            "constant": claim,
        }
        for claim, path in kubeflow.volumes.items()
    ]
    labels = spec["deploymentSpec"]["executors"]
    executors = {label: {"pvcMount": mounts} for label in labels}
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
