"""What goes over the wire, in each of the two protocols."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from serving.client.replies import ClientError, Reply
from serving.client.requests import Input, Signature

# What an HTTP status says; two codes share some of them.
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
_TYPES = {"float": "float32", "double": "float64"}


@dataclass(frozen=True)
class Target:
    """A model of a server.

    Attributes:
        address: ``host:port``.
        secure: whether over TLS.
        model: its name.
        version: its number; None for the newest.
        label: what the version is called, instead of its number.
        headers: that go with each request.
        authority: a file with certificates to trust, in place of the system's; None: those.
    """

    address: str
    secure: bool
    model: str
    version: int | None = None
    label: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    authority: Path | None = None

    @property
    def path(self) -> str:
        """Of the model over REST."""
        path = f"/v1/models/{urllib.parse.quote(self.model, safe='')}"
        if self.version is not None:
            return f"{path}/versions/{self.version}"
        return f"{path}/labels/{urllib.parse.quote(self.label, safe='')}" if self.label else path


class RestMessages:
    """Requests and answers over REST.

    A message is the method, the path and the body of a request.
    """

    def __init__(self, target: Target):
        self._target = target

    def predict(
        self, name: str, signature: Signature, inputs: Mapping[str, np.ndarray]
    ) -> tuple[str, str, bytes | None]:
        """The request to a signature."""
        values = {key: _plain(value) for key, value in inputs.items()}
        body = {"signature_name": name, "inputs": values}
        # ASCII: what is no UTF-8 was made base64.
        return "POST", f"{self._target.path}:predict", json.dumps(body).encode()

    def reply(self, signature: Signature, body: bytes) -> Reply:
        """The answer to it."""
        found = json.loads(body)["outputs"]
        if len(signature.outputs) == 1 and not isinstance(found, dict):
            found = {next(iter(signature.outputs)): found}
        return Reply(
            {name: _tensor(value, signature.outputs[name]) for name, value in found.items()}
        )

    def metadata(self) -> tuple[str, str, bytes | None]:
        """The request for the signatures."""
        return "GET", f"{self._target.path}/metadata", None

    def signatures(self, body: bytes) -> dict[str, Signature]:
        """The signatures in the answer to it."""
        found = json.loads(body)["metadata"]["signature_def"]["signature_def"]
        return {
            name: Signature(
                {
                    key: Input(_kind(one["dtype"]), len(one["tensor_shape"].get("dim", [])))
                    for key, one in sorted(entry.get("inputs", {}).items())
                },
                {key: _kind(one["dtype"]) for key, one in entry.get("outputs", {}).items()},
            )
            for name, entry in found.items()
        }

    def status(self) -> tuple[str, str, bytes | None]:
        """The request for the versions and their states."""
        return "GET", self._target.path, None

    def states(self, body: bytes) -> dict[int, str]:
        """The versions and their states in the answer to it."""
        found = json.loads(body)["model_version_status"]
        return {int(entry["version"]): entry["state"] for entry in found}

    @staticmethod
    def error(status: int, body: bytes) -> ClientError:
        """What an answer that is none says."""
        try:
            message = str(json.loads(body)["error"])
        except (ValueError, KeyError, TypeError):
            message = body[:500].decode("utf-8", errors="replace").strip() or f"HTTP {status}"
        code = _CODES.get(status, "INTERNAL" if status >= 500 else "UNKNOWN")
        return ClientError(code, message)


class GrpcMessages:
    """Requests and answers over gRPC.

    A message is the service, the method and the request's protocol buffer.
    """

    def __init__(self, target: Target):
        self._target = target

    def predict(
        self, name: str, signature: Signature, inputs: Mapping[str, np.ndarray]
    ) -> tuple[str, str, Any]:
        """The request to a signature."""
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2

        request = predict_pb2.PredictRequest()
        self._spec(request.model_spec)
        request.model_spec.signature_name = name
        for key, value in inputs.items():
            kind = tf.string if value.dtype == object else None
            request.inputs[key].CopyFrom(tf.make_tensor_proto(value, kind))
        return "PredictionService", "Predict", request

    def reply(self, signature: Signature, response: Any) -> Reply:
        """The answer to it."""
        import tensorflow as tf

        outputs = {name: tf.make_ndarray(one) for name, one in response.outputs.items()}
        return Reply(outputs, response.model_spec.version.value)

    def metadata(self) -> tuple[str, str, Any]:
        """The request for the signatures."""
        from tensorflow_serving.apis import get_model_metadata_pb2

        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        self._spec(request.model_spec)
        return "PredictionService", "GetModelMetadata", request

    def signatures(self, response: Any) -> dict[str, Signature]:
        """The signatures in the answer to it."""
        from tensorflow.core.framework import types_pb2
        from tensorflow_serving.apis import get_model_metadata_pb2

        found = get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(found)

        def kind(one: Any) -> str:
            return _kind(types_pb2.DataType.Name(one.dtype))

        return {
            name: Signature(
                {
                    key: Input(kind(entry.inputs[key]), len(entry.inputs[key].tensor_shape.dim))
                    for key in sorted(entry.inputs)
                },
                {key: kind(one) for key, one in entry.outputs.items()},
            )
            for name, entry in found.signature_def.items()
        }

    def status(self) -> tuple[str, str, Any]:
        """The request for the versions and their states."""
        from tensorflow_serving.apis import get_model_status_pb2

        request = get_model_status_pb2.GetModelStatusRequest()
        self._spec(request.model_spec)
        return "ModelService", "GetModelStatus", request

    def states(self, response: Any) -> dict[int, str]:
        """The versions and their states in the answer to it."""
        from tensorflow_serving.apis import get_model_status_pb2

        names = get_model_status_pb2.ModelVersionStatus.State
        return {one.version: names.Name(one.state) for one in response.model_version_status}

    def _spec(self, spec: Any) -> None:
        spec.name = self._target.model
        if self._target.version is not None:
            spec.version.value = self._target.version
        elif self._target.label:
            spec.version_label = self._target.label


def _kind(name: str) -> str:
    """``DT_STRING`` → ``string``."""
    return name.removeprefix("DT_").lower()


def _plain(value: np.ndarray) -> Any:
    """A tensor as JSON has it; bytes that are no text in base64."""
    return _texts(value.tolist()) if value.dtype == object else value.tolist()


def _texts(value: Any) -> Any:
    if isinstance(value, list):
        return [_texts(one) for one in value]
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode("ascii")}


def _tensor(value: Any, kind: str) -> np.ndarray:
    if kind != "string":
        return np.array(value, dtype=_TYPES.get(kind, kind))
    shape: list[int] = []
    inner = value
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0] if inner else None
    flat = value
    for _ in shape[1:]:
        flat = [one for several in flat for one in several]
    found = np.empty(len(flat) if shape else 1, dtype=object)
    found[:] = [_bytes(one) for one in (flat if shape else [flat])]
    return found.reshape(shape)


def _bytes(value: Any) -> bytes:
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value.encode()
