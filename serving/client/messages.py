"""The requests and responses of both protocols."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from regard.serving.client.conversion import ClientError, Input, Reply, Signature
from regard.serving.client.protobuf import TYPE_NAMES, message_class, read_tensor, write_tensor

# Gateways and the server use these statuses; some stand for two codes.
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_DTYPES = {"float": "float32", "double": "float64"}
_STATES = {0: "UNKNOWN", 10: "START", 20: "LOADING", 30: "AVAILABLE", 40: "UNLOADING", 50: "END"}


@dataclass(frozen=True)
class Target:
    """A model of a server.

    Attributes:
        address: ``host:port``.
        is_secure: whether to use TLS.
        model: the model's name.
        version: its number; None for the newest.
        label: the version's label, instead of its number.
        headers: sent with each request.
        ca_file: trusted certificates; None: the system's.
    """

    address: str
    is_secure: bool
    model: str
    version: int | None = None
    label: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None

    @property
    def path(self) -> str:
        """The REST path of the model."""
        path = f"/v1/models/{urllib.parse.quote(self.model, safe='')}"
        if self.version is not None:
            return f"{path}/versions/{self.version}"
        return f"{path}/labels/{urllib.parse.quote(self.label, safe='')}" if self.label else path


@dataclass(frozen=True)
class Request:
    """A request: the REST path or the gRPC method, and the body; None for a GET request."""

    path: str
    body: bytes | None


class Messages(Protocol):
    """Creates requests and parses responses."""

    def predict(self, name: str, inputs: Mapping[str, np.ndarray]) -> Request:
        """Create a request to a signature."""

    def parse_reply(self, signature: Signature, body: bytes) -> Reply:
        """Parse its response."""

    def metadata(self) -> Request:
        """Create a request for the signatures."""

    def parse_signatures(self, body: bytes) -> dict[str, Signature]:
        """Parse its response."""

    def status(self) -> Request:
        """Create a request for the states of the versions."""

    def parse_states(self, body: bytes) -> dict[int, str]:
        """Parse its response."""


class RestMessages:
    """Messages of the REST API."""

    def __init__(self, target: Target):
        self._target = target

    def predict(self, name: str, inputs: Mapping[str, np.ndarray]) -> Request:
        """Create a request to a signature."""
        values = {key: _encode_bytes(value.tolist()) for key, value in inputs.items()}
        body = json.dumps({"signature_name": name, "inputs": values}).encode()
        return Request(f"{self._target.path}:predict", body)

    def parse_reply(self, signature: Signature, body: bytes) -> Reply:
        """Parse its response."""
        outputs = json.loads(body)["outputs"]
        if len(signature.outputs) == 1 and not isinstance(outputs, dict):
            outputs = {next(iter(signature.outputs)): outputs}
        return Reply(
            {name: _decode_array(value, signature.outputs[name]) for name, value in outputs.items()}
        )

    def metadata(self) -> Request:
        """Create a request for the signatures."""
        return Request(f"{self._target.path}/metadata", None)

    def parse_signatures(self, body: bytes) -> dict[str, Signature]:
        """Parse its response."""
        signatures = json.loads(body)["metadata"]["signature_def"]["signature_def"]
        return {
            name: Signature(
                {
                    key: Input(_type_name(one), len(one["tensor_shape"].get("dim", [])))
                    for key, one in sorted(entry.get("inputs", {}).items())
                },
                {key: _type_name(one) for key, one in entry.get("outputs", {}).items()},
            )
            for name, entry in signatures.items()
        }

    def status(self) -> Request:
        """Create a request for the states of the versions."""
        return Request(self._target.path, None)

    def parse_states(self, body: bytes) -> dict[int, str]:
        """Parse its response."""
        states = json.loads(body)["model_version_status"]
        return {int(entry["version"]): entry["state"] for entry in states}


def parse_http_error(status: int, body: bytes) -> ClientError:
    """Convert a REST response that is an error."""
    try:
        message = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        message = body[:500].decode("utf-8", errors="replace").strip() or f"HTTP {status}"
    return ClientError(_CODES.get(status, "INTERNAL" if status >= 500 else "UNKNOWN"), message)


class GrpcMessages:
    """Messages of the gRPC API."""

    def __init__(self, target: Target):
        self._target = target

    def predict(self, name: str, inputs: Mapping[str, np.ndarray]) -> Request:
        """Create a request to a signature."""
        request = self._create("PredictRequest")
        request.model_spec.signature_name = name
        for key, value in inputs.items():
            write_tensor(request.inputs.add(key=key).value, value)
        return _grpc_request("PredictionService/Predict", request)

    def parse_reply(self, signature: Signature, body: bytes) -> Reply:
        """Parse its response."""
        response = message_class("PredictResponse").FromString(body)
        outputs = {entry.key: read_tensor(entry.value) for entry in response.outputs}
        return Reply(outputs, response.model_spec.version.value)

    def metadata(self) -> Request:
        """Create a request for the signatures."""
        request = self._create("MetadataRequest")
        request.metadata_field.append("signature_def")
        return _grpc_request("PredictionService/GetModelMetadata", request)

    def parse_signatures(self, body: bytes) -> dict[str, Signature]:
        """Parse its response."""
        response = message_class("MetadataResponse").FromString(body)
        packed = {entry.key: entry.value.value for entry in response.metadata}
        signatures = message_class("SignatureDefMap").FromString(packed["signature_def"])

        def type_name(info: Any) -> str:
            return TYPE_NAMES.get(info.dtype, f"type {info.dtype}")

        return {
            entry.key: Signature(
                {
                    one.key: Input(type_name(one.value), len(one.value.tensor_shape.dim))
                    for one in sorted(entry.value.inputs, key=lambda one: one.key)
                },
                {one.key: type_name(one.value) for one in entry.value.outputs},
            )
            for entry in signatures.signature_def
        }

    def status(self) -> Request:
        """Create a request for the states of the versions."""
        return _grpc_request("ModelService/GetModelStatus", self._create("StatusRequest"))

    def parse_states(self, body: bytes) -> dict[int, str]:
        """Parse its response."""
        response = message_class("StatusResponse").FromString(body)
        return {one.version: _STATES[one.state] for one in response.model_version_status}

    def _create(self, name: str) -> Any:
        request = message_class(name)()
        request.model_spec.name = self._target.model
        if self._target.version is not None:
            request.model_spec.version.value = self._target.version
        elif self._target.label:
            request.model_spec.version_label = self._target.label
        return request


def _grpc_request(method: str, message: Any) -> Request:
    return Request(f"/tensorflow.serving.{method}", message.SerializeToString())


def _type_name(entry: Mapping[str, str]) -> str:
    """Return a type without its prefix: ``DT_STRING`` is ``string``."""
    return entry["dtype"].removeprefix("DT_").lower()


def _encode_bytes(value: Any) -> Any:
    """Convert bytes in nested lists to text, or to base64 if they are not UTF-8."""
    if isinstance(value, list):
        return [_encode_bytes(one) for one in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode("ascii")}


def _decode_array(value: Any, kind: str) -> np.ndarray:
    if kind != "string":
        return np.array(value, dtype=_DTYPES.get(kind, kind))
    shape: list[int] = []
    flat, first = [value], value
    while isinstance(first, list):
        shape.append(len(first))
        first = first[0] if first else None
        flat = [inner for one in flat for inner in one]
    texts = np.empty(len(flat), dtype=object)
    texts[:] = [
        base64.b64decode(one["b64"]) if isinstance(one, dict) else one.encode() for one in flat
    ]
    return texts.reshape(shape)
