"""Checks on a compiled pipeline before it is sent to a cluster.

A pipeline that was edited by hand may have parts that open-source Kubeflow Pipelines refuses only
when a run starts, or never reports. The rules are those of the API server
(``template/v2_template.go``) and the compiler to Argo (``v2/compiler``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from regard.components.common.errors import UserError
from regard.pipeline.runners.kubeflow.entrypoint import COMMAND
from regard.pipeline.runners.kubeflow.pipeline_file import CompiledPipeline

if TYPE_CHECKING:
    from kfp.pipeline_spec.pipeline_spec_pb2 import PipelineDeploymentConfig

SCHEMA_VERSION = "2.1.0"


def validate_pipeline(pipeline: CompiledPipeline, source: str) -> None:
    """Check a compiled pipeline.

    Args:
        pipeline: the pipeline.
        source: the file it was read from, for error messages.

    Raises:
        UserError: lists every problem.
    """
    if problems := list(find_problems(pipeline)):
        remedy = "Compile the pipeline again with `regard compile`."
        raise UserError("\n".join(problems), source, remedy)


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
    if spec.schema_version != SCHEMA_VERSION:
        yield f"schemaVersion is {spec.schema_version!r}; only {SCHEMA_VERSION} is supported."
    if not spec.root.dag.tasks:
        yield "root.dag.tasks is empty. A pipeline needs at least one node."
    yield from _executor_problems(deployment)


def _executor_problems(deployment: PipelineDeploymentConfig) -> Iterator[str]:
    for label, executor in deployment.executors.items():
        where = f"deploymentSpec.executors.{label}"
        kind = executor.WhichOneof("spec")
        if kind != "container":
            yield f"{where} is a {kind}, which open-source Kubeflow Pipelines does not run."
        # The launcher needs our command: TFX's own reads neither minio:// nor untyped artifacts.
        elif tuple(executor.container.command) != COMMAND:
            yield f"{where}.container.command must be {' '.join(COMMAND)!r}."
        elif executor.container.HasField("lifecycle"):
            yield f"{where}.container.lifecycle is ignored: drivers are never executed."
