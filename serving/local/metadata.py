"""What a model says of its signatures, as both protocols tell it."""

from __future__ import annotations

from typing import Any

from serving.local.versions import Version


def metadata_response(name: str, version: Version) -> Any:
    """A ``GetModelMetadataResponse`` with the signatures of a version."""
    from tensorflow_serving.apis import get_model_metadata_pb2

    assert version.servable is not None
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name = name
    response.model_spec.version.value = version.number
    response.metadata["signature_def"].Pack(_signatures(version))
    return response


def metadata_json(name: str, version: Version) -> bytes:
    """The same over REST: fields as they are called, those with default values too."""
    from google.protobuf import json_format

    from serving.local.json_text import pretty

    signatures = json_format.MessageToDict(
        _signatures(version),
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )
    spec = {"name": name, "signature_name": "", "version": str(version.number)}
    # Twice: the first is the key of the metadata, the second the field of the map in it.
    return pretty({"model_spec": spec, "metadata": {"signature_def": signatures}})


def _signatures(version: Version) -> Any:
    from tensorflow_serving.apis import get_model_metadata_pb2

    assert version.servable is not None
    signatures = get_model_metadata_pb2.SignatureDefMap()
    for name, signature in version.servable.signatures.items():
        signatures.signature_def[name].CopyFrom(signature)
    return signatures
