"""A PipelineSpec as the API server reads it: strictly, and every key under its one name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.kubeflow.lint.document import Path


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


def deployment() -> Any:
    """The type of ``deploymentSpec``, which the server reads without minding unknown keys."""
    from kfp.pipeline_spec import pipeline_spec_pb2

    return pipeline_spec_pb2.PipelineDeploymentConfig.DESCRIPTOR


def unknown_keys(value: Any, message: Any, path: Path = ()) -> Iterator[Path]:
    """Yields the keys of a value that a type of message does not know, each by its path.

    Args:
        value: as the file has it.
        message: the descriptor of the type.
        path: where the value stands.
    """
    if not isinstance(value, dict) or message.full_name.startswith("google.protobuf."):
        return
    known = {name: field for field in message.fields for name in (field.name, field.json_name)}
    for key, inner in value.items():
        field = known.get(key)
        if field is None:
            if not str(key).startswith("@"):
                yield (*path, key)
        elif field.message_type is not None:
            yield from _unknown_within(inner, field, (*path, key))


def _unknown_within(value: Any, field: Any, path: Path) -> Iterator[Path]:
    kind = field.message_type
    if kind.GetOptions().map_entry:
        kind = kind.fields_by_name["value"].message_type
        for key, item in value.items() if isinstance(value, dict) and kind is not None else ():
            yield from unknown_keys(item, kind, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_keys(item, kind, (*path, index))
    else:
        yield from unknown_keys(value, kind, path)


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
