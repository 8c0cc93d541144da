"""Checks on a compiled pipeline before it is sent to a cluster.

Open-source Kubeflow Pipelines reports some mistakes only at upload, some at the start of a run and
some never. These checks cover what a pipeline compiled by Regard, possibly edited by hand, can get
wrong. The rules are those of the API server (``template/v2_template.go``) and the compiler to Argo
(``v2/compiler``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from regard.components.common.errors import UserError
from regard.pipeline.runners.kubeflow.entrypoint import COMMAND
from regard.pipeline.runners.kubeflow.pipeline_file import RECOMPILE, CompiledPipeline

if TYPE_CHECKING:
    from kfp.pipeline_spec.pipeline_spec_pb2 import (
        ComponentSpec,
        PipelineDeploymentConfig,
        PipelineSpec,
        PipelineTaskSpec,
    )

SCHEMA_VERSION = "2.1.0"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_NAME = 128  # characters
_PIPELINE_ROOT = re.compile(r"(minio|s3|gs)://[^/?]+(/[^?]*)?(\?.+)?")


def validate_pipeline(pipeline: CompiledPipeline, source: str) -> None:
    """Check a compiled pipeline.

    Args:
        pipeline: the pipeline.
        source: the file it was read from, for error messages.

    Raises:
        UserError: lists every problem.
    """
    if problems := list(find_problems(pipeline)):
        raise UserError("\n".join(problems), source, RECOMPILE)


def find_problems(pipeline: CompiledPipeline) -> Iterator[str]:
    """Yield what the cluster would refuse or ignore, one sentence per problem."""
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    try:
        spec = json_format.ParseDict(pipeline.spec, pipeline_spec_pb2.PipelineSpec())
        deployment = json_format.ParseDict(
            json_format.MessageToDict(spec.deployment_spec),
            pipeline_spec_pb2.PipelineDeploymentConfig(),
        )
        json_format.ParseDict(pipeline.platform, pipeline_spec_pb2.PlatformSpec())
    except json_format.ParseError as error:
        yield f"This is not a valid PipelineSpec or PlatformSpec: {error}."
        return
    problems = [
        *_header_problems(spec),
        *_parameter_problems(spec),
        *_executor_problems(deployment),
        *_reference_problems(spec, deployment),
        *_platform_problems(pipeline.platform, deployment),
    ]
    yield from problems or _sdk_problems(pipeline)


def _header_problems(spec: PipelineSpec) -> Iterator[str]:
    if spec.schema_version != SCHEMA_VERSION:
        yield f"schemaVersion is {spec.schema_version!r}; only {SCHEMA_VERSION} is supported."
    name = spec.pipeline_info.name
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        yield (
            f"pipelineInfo.name {name!r} is invalid. Use at most {_MAX_NAME} lowercase letters, "
            "digits, '-' and '.', with a letter or digit at both ends."
        )
    root = spec.default_pipeline_root
    if root and not _PIPELINE_ROOT.fullmatch(root):
        yield f"defaultPipelineRoot {root!r} is not a bucket. Use minio://, s3:// or gs://."
    if not spec.root.dag.tasks:
        yield "root.dag.tasks is empty. A pipeline needs at least one node."


def _parameter_problems(spec: PipelineSpec) -> Iterator[str]:
    for name, parameter in spec.root.input_definitions.parameters.items():
        where = f"root.inputDefinitions.parameters.{name}"
        if not parameter.parameter_type:
            yield f"{where} has no parameterType."
        if not parameter.HasField("default_value"):
            yield f"{where} has no defaultValue, so every run would have to set it."


def _executor_problems(deployment: PipelineDeploymentConfig) -> Iterator[str]:
    for label, executor in deployment.executors.items():
        where = f"deploymentSpec.executors.{label}"
        kind = executor.WhichOneof("spec")
        if kind != "container":
            yield f"{where} is a {kind}, which open-source Kubeflow Pipelines does not run."
            continue
        container = executor.container
        if not container.image:
            yield f"{where}.container has no image."
        # The launcher needs our command: TFX's own reads neither minio:// nor untyped artifacts.
        if tuple(container.command) != COMMAND:
            yield f"{where}.container.command must be {' '.join(COMMAND)!r}."
        if container.HasField("lifecycle"):
            yield f"{where}.container.lifecycle is ignored: drivers are never executed."


def _reference_problems(spec: PipelineSpec, deployment: PipelineDeploymentConfig) -> Iterator[str]:
    for name, component in {"root": spec.root, **spec.components}.items():
        label = component.executor_label
        if label and label not in deployment.executors:
            yield f"components.{name}.executorLabel {label!r} is not an executor."
        for task_name, task in component.dag.tasks.items():
            where = f"{name}.dag.tasks.{task_name}"
            reference = task.component_ref.name
            if reference not in spec.components:
                yield f"{where}.componentRef {reference!r} is not a component."
                continue
            for producer in sorted(_producers(task) - set(component.dag.tasks)):
                yield f"{where} depends on {producer!r}, which is not a task."
            for missing in _missing_inputs(task, spec.components[reference]):
                yield f"{where}.inputs lacks {missing!r}."


def _producers(task: PipelineTaskSpec) -> set[str]:
    """Return the names of the tasks that a task waits for."""
    parameters = task.inputs.parameters.values()
    artifacts = task.inputs.artifacts.values()
    sources = [source.task_output_parameter.producer_task for source in parameters]
    sources += [source.task_output_artifact.producer_task for source in artifacts]
    return {*task.dependent_tasks, *filter(None, sources)}


def _missing_inputs(task: PipelineTaskSpec, component: ComponentSpec) -> Iterator[str]:
    definitions = component.input_definitions
    for name, parameter in definitions.parameters.items():
        optional = parameter.is_optional or parameter.HasField("default_value")
        if not optional and name not in task.inputs.parameters:
            yield name
    for name, artifact in definitions.artifacts.items():
        if not artifact.is_optional and name not in task.inputs.artifacts:
            yield name


def _platform_problems(
    platform: dict[str, Any], deployment: PipelineDeploymentConfig
) -> Iterator[str]:
    """A platform's settings of an unknown executor are ignored by the cluster."""
    kubernetes = platform.get("platforms", {}).get("kubernetes", {})
    for label in kubernetes.get("deploymentSpec", {}).get("executors", {}):
        if label not in deployment.executors:
            yield f"The PlatformSpec names {label!r}, which is not an executor."


def _sdk_problems(pipeline: CompiledPipeline) -> Iterator[str]:
    """Load the file with the Kubeflow SDK, if it is installed."""
    try:
        from kfp.components import load_component_from_text
    except ImportError:  # only kfp-pipeline-spec is required
        return
    try:
        load_component_from_text(pipeline.to_yaml())
    except Exception as error:  # the SDK documents no exception types
        yield f"The Kubeflow SDK does not load the pipeline: {error}"
