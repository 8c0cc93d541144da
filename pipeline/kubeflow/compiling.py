"""A configuration to the file that Kubeflow Pipelines runs: a PipelineSpec 2.1 as YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from components.parameters import PARAMETERS
from pipeline.kubeflow.lint.document import FLOAT, FLOAT_BEGINS, NEWER_FLOAT
from pipeline.kubeflow.settings import run_parameters, section
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


# Else a digest such as 1234e5 would be written as what the server takes for a number.
_Plain.add_implicit_resolver(FLOAT, NEWER_FLOAT, list(FLOAT_BEGINS))


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


def as_text(documents: list[dict[str, Any]]) -> str:
    """The documents as one file."""
    spec = documents[0]
    head = [f"# Pipeline {spec['pipelineInfo']['name']}, compiled by `regard compile`."]
    for name, parameter in sorted(_parameters(spec).items()):
        value = parameter["defaultValue"]
        default = (value or "empty") if isinstance(value, str) else f"{value:g}"
        head.append(f"# Parameter {name} (default {default}): {parameter['description']}")
    body = yaml.dump_all(documents, Dumper=_Plain, sort_keys=True, allow_unicode=True)
    return "\n".join(head) + "\n" + body


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
    defaults = run_parameters(config)
    for name, parameter in _parameters(spec).items():
        default = defaults[name]
        parameter["defaultValue"] = default if isinstance(default, str) else float(default)
        parameter["isOptional"] = True
        parameter["description"] = PARAMETERS[name].about


def _platform(spec: dict[str, Any], kubeflow: Kubeflow) -> dict[str, Any]:
    """The part of the file that Kubernetes alone is concerned with: the volumes of each node."""
    # Newer servers have another key for the claim, too, which older ones refuse to read at all.
    mounts = [{"mountPath": path, "constant": claim} for claim, path in kubeflow.volumes.items()]
    labels = spec["deploymentSpec"]["executors"]
    executors = {label: {"pvcMount": mounts} for label in labels}
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
