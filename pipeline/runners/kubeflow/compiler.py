"""Compile a configuration to a PipelineSpec 2.1 that Kubeflow Pipelines runs.

Neither the data nor the registry is read while compiling. What is resolved when:

- compiling: the configuration, the digests of Regard's code, and the paths of the data, with
  ``${REGARD_HOME}`` as ``kubeflow.home``. A pattern such as ``train-*.tsv`` stays a pattern.
- CorpusGen: spans, files, and the fingerprint of their content.
- Trainer: the models of a warm start and of an ensemble; and the checkpoint folder, from their
  content and that of the examples and word vectors, so that a killed training resumes.
- TokenizerTrainer: the model of a warm start whose tokenizers are kept.
- Augmenter: the models that change the train split, and monolingual texts.
- ExampleValidator, Predictor: the version in production, which is the newest in the registry.
- start of a run: the run parameters (``regard.components.common.runtime_parameters``).

Nothing is cached between runs: Kubeflow's cache would compare file names, not contents, and train
on the examples of an earlier run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from regard.components.common.runtime_parameters import PARAMETERS
from regard.components.registry.store import LATEST
from regard.core.errors import UserError
from regard.core.native_output import silence_output
from regard.pipeline.context import PipelineContext, ProductionBaseline, RunData, RunFolders
from regard.pipeline.runners.kubeflow.entrypoint import COMMAND
from regard.pipeline.runners.kubeflow.pipeline_file import CompiledPipeline
from regard.pipeline.runners.kubeflow.settings import kubeflow_section, run_parameters
from regard.pipeline.workspace import Workspace

if TYPE_CHECKING:
    from tfx.dsl.components.base.base_node import BaseNode

    from regard.pipeline.config import Config
    from regard.pipeline.config.kubeflow import (
        KubeflowConfig,
        PodConfig,
        ResourcesConfig,
        Toleration,
    )

_ACCELERATOR = "nvidia.com/gpu"
_SCRATCH = {"volumeName": "regard-tmp", "mountPath": "/tmp"}
# Kubeflow's default is no retry at all after the maximum, which counts from the node's first start.
_BACKOFF = {"backoffDuration": "60s", "backoffFactor": 2.0, "backoffMaxDuration": "31536000s"}


def compile_pipeline(config: Config) -> CompiledPipeline:
    """Compile a configuration. The same configuration and code always give the same result."""
    kubeflow = kubeflow_section(config)
    with silence_output():
        spec = _run_tfx_compiler(config, kubeflow)
    _set_parameter_defaults(spec, config)
    platform = {}
    for node, task in spec["root"]["dag"]["tasks"].items():
        pod, label = kubeflow.pod_of(node), f"{node}_executor"
        container = spec["deploymentSpec"]["executors"][label].get("container")
        if container is None:  # an Importer, which Kubeflow Pipelines runs itself
            continue
        container["image"] = kubeflow.image_of(node)
        if resources := _resources(kubeflow.resources_of(node)):
            container["resources"] = resources
        container["args"].insert(0, f"--artifact_folder={kubeflow.home}/artifacts")
        if pod.environment:
            container["env"] = [{"name": n, "value": v} for n, v in pod.environment.items()]
        if pod.retries:
            task["retryPolicy"] = {"maxRetryCount": pod.retries, **_BACKOFF}
        platform[label] = _executor_config(pod, kubeflow)
    if kubeflow.pipeline_root:
        spec["defaultPipelineRoot"] = kubeflow.pipeline_root
    executors = {"deploymentSpec": {"executors": platform}}
    return CompiledPipeline(spec, {"platforms": {"kubernetes": executors}})


def cluster_context(config: Config) -> PipelineContext:
    """Return the context in which the graph is built for a cluster."""
    from tfx.orchestration.data_types import RuntimeParameter

    kubeflow = kubeflow_section(config)
    workspace = Workspace(Path(kubeflow.home))
    production = ProductionBaseline()
    if config.evaluation.production is not None:
        versions = str(PurePosixPath(kubeflow.registry_folder, config.name))
        profile = json.dumps({"version": LATEST, "versions": versions})
        production = ProductionBaseline(folder=versions, version=LATEST, profile=profile)
    return PipelineContext(
        folders=RunFolders(
            artifacts=kubeflow.pipeline_root or "",
            registry=kubeflow.registry_folder,
            checkpoints=str(workspace.pipeline(config.name).checkpoints),
            augmentation=str(workspace.augmentation),
        ),
        data=RunData(corpus=json.dumps(config.corpus.to_json(), sort_keys=True)),
        production=production,
        run_parameters={
            name: RuntimeParameter(name=name, ptype=PARAMETERS[name].kind, default=value)
            for name, value in run_parameters(config).items()
        },
    )


def _run_tfx_compiler(config: Config, kubeflow: KubeflowConfig) -> dict[str, Any]:
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as tfx_runner

    from regard.pipeline.graph import build_pipeline  # imports TFX

    pipeline = build_pipeline(config, cluster_context(config))
    _check_kinds(pipeline.components, config)
    runner = tfx_runner.KubeflowV2DagRunner(
        tfx_runner.KubeflowV2DagRunnerConfig(
            default_image=kubeflow.image, default_commands=list(COMMAND), use_pipeline_spec_2_1=True
        )
    )
    return runner.run(pipeline, write_out=False)["pipelineSpec"]


def _check_kinds(nodes: Iterable[BaseNode], config: Config) -> None:
    """Check that Kubeflow Pipelines can run all nodes, also those of ``pipeline.extra``.

    Raises:
        UserError: It cannot run one of them, for example a Resolver.
    """
    from tfx.dsl.components.base.base_component import BaseComponent
    from tfx.dsl.components.common.importer import Importer

    for node in nodes:
        if not isinstance(node, BaseComponent | Importer):
            message = f"Kubeflow Pipelines cannot run {node.id}, a {type(node).__name__}."
            remedy = "Use components and Importers only, or run the pipeline with `regard run`."
            raise UserError(message, config.locate("pipeline.extra"), remedy)


def _resources(resources: ResourcesConfig) -> dict[str, Any]:
    """Return the resources of a container; requests and limits are the same."""
    values: dict[str, Any] = {}
    for name, amount in (("cpu", resources.cpu), ("memory", resources.memory)):
        if amount is not None:
            values[f"{name}Request"] = values[f"{name}Limit"] = amount
    if resources.gpu:
        values["accelerator"] = {"type": _ACCELERATOR, "count": str(resources.gpu)}
    return values


def _set_parameter_defaults(spec: dict[str, Any], config: Config) -> None:
    """Add the defaults of the run parameters. TFX omits them, so each would be mandatory."""
    defaults = run_parameters(config)
    for name, parameter in CompiledPipeline(spec).parameters.items():
        default = defaults[name]
        parameter["defaultValue"] = default if isinstance(default, str) else float(default)
        parameter["isOptional"] = True
        parameter["description"] = PARAMETERS[name].description


def _executor_config(pod: PodConfig, kubeflow: KubeflowConfig) -> dict[str, Any]:
    """Return a node's ``KubernetesExecutorConfig``, with only those keys that old servers know."""
    config: dict[str, Any] = {
        "pvcMount": [
            {"mountPath": folder, "constant": claim} for claim, folder in kubeflow.volumes.items()
        ],
        "secretAsVolume": [
            {"secretName": name, "mountPath": folder} for name, folder in pod.secret_folders.items()
        ],
        "secretAsEnv": [
            _secret_variable(name, path) for name, path in pod.secret_environment.items()
        ],
        "imagePullSecret": [{"secretName": name} for name in pod.image_pull_secrets],
        "tolerations": [_toleration(toleration) for toleration in pod.tolerations],
    }
    if pod.labels:
        config["podMetadata"] = {"labels": pod.labels}
    if pod.node_selector:
        config["nodeSelector"] = {"labels": pod.node_selector}
    if pod.scratch:
        config["emptyDirMounts"] = [{**_SCRATCH, "sizeLimit": f"{pod.scratch}G"}]
    return {key: value for key, value in config.items() if value}


def _secret_variable(name: str, path: str) -> dict[str, Any]:
    """Return an environment variable whose value is ``SECRET/KEY``."""
    secret, key = path.split("/")
    return {"secretName": secret, "keyToEnv": [{"secretKey": key, "envVar": name}]}


def _toleration(toleration: Toleration) -> dict[str, Any]:
    operator = "Exists" if toleration.value is None else "Equal"
    return {"operator": operator, **toleration.model_dump(exclude_none=True)}
