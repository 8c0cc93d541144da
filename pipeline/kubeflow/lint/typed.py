"""A PipelineSpec as the API server reads it: strictly, and every key under its one name."""

from __future__ import annotations

from typing import Any


class NotTyped(ValueError):
    """The value is no PipelineSpec, or no PlatformSpec."""


def typed(value: Any) -> dict[str, Any]:
    """The PipelineSpec with ``deploymentSpec`` read as what it is, too.

    Raises:
        NotTyped: it has an unknown key, or a value of another type.
    """
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    try:
        spec = json_format.MessageToDict(
            json_format.ParseDict(value, pipeline_spec_pb2.PipelineSpec())
        )
        deployment = json_format.ParseDict(
            spec.get("deploymentSpec", {}),
            pipeline_spec_pb2.PipelineDeploymentConfig(),
            ignore_unknown_fields=True,
        )
    except json_format.ParseError as error:
        raise NotTyped(str(error)) from error
    return {**spec, "deploymentSpec": json_format.MessageToDict(deployment)}


def check_platform(value: Any) -> None:
    """Checks that a document is a PlatformSpec.

    Raises:
        NotTyped: as ``typed`` does.
    """
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    try:
        json_format.ParseDict(value, pipeline_spec_pb2.PlatformSpec())
    except json_format.ParseError as error:
        raise NotTyped(str(error)) from error
