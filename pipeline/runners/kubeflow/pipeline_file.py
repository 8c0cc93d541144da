"""The YAML file of a compiled pipeline: a PipelineSpec and, with volumes, a PlatformSpec."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from regard.core.errors import UserError
from regard.core.files import check_no_special_file
from regard.core.yaml_text import find_excess
from regard.pipeline.runners.kubeflow.entrypoint import COMMAND

if TYPE_CHECKING:
    from kfp.pipeline_spec.pipeline_spec_pb2 import PipelineDeploymentConfig

SCHEMA_VERSION = "2.1.0"


@dataclasses.dataclass(frozen=True)
class CompiledPipeline:
    """A compiled pipeline.

    Attributes:
        spec: the PipelineSpec as JSON.
        platform: the PlatformSpec as JSON (the mounted volumes); empty without volumes.
    """

    spec: dict[str, Any]
    platform: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return str(self.spec["pipelineInfo"]["name"])

    @property
    def pipeline_root(self) -> str | None:
        """Where the artifacts are stored; None: the cluster decides."""
        return self.spec.get("defaultPipelineRoot")

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The definition of each run parameter."""
        return self.spec["root"].get("inputDefinitions", {}).get("parameters", {})

    def to_yaml(self) -> str:
        """Return the file's content. It begins with a comment on each run parameter."""
        head = [f"# Pipeline {self.name}, compiled by `regard compile`."]
        for name, parameter in sorted(self.parameters.items()):
            value = parameter["defaultValue"]
            default = (value or "empty") if isinstance(value, str) else f"{value:g}"
            head.append(f"# Parameter {name} (default {default}): {parameter['description']}")
        documents = [self.spec, self.platform] if self.platform else [self.spec]
        body = yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=True)
        return "\n".join(head) + "\n" + body


def read_pipeline(path: Path) -> CompiledPipeline | None:
    """Read a compiled pipeline; None if a file is anything else, such as a configuration."""
    try:
        check_no_special_file(path)
        text = path.read_text(encoding="utf-8-sig")
        if find_excess(yaml.parse(text, yaml.CSafeLoader)):
            return None
        documents = list(yaml.load_all(text, yaml.CSafeLoader))
    except (OSError, ValueError, LookupError, AttributeError, yaml.YAMLError, RecursionError):
        return None
    match documents:
        case [{"pipelineInfo": _} as spec]:
            return CompiledPipeline(spec)
        case [{"pipelineInfo": _} as spec, {"platforms": _} as platform]:
            return CompiledPipeline(spec, platform)
    return None


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
