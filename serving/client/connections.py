"""Connections to a server over REST and gRPC, with the same methods."""

import base64
import contextlib
import ipaddress
import json
import ssl
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regard.serving.client.conversion import ClientError, ClientSignature, Input, Outputs
from regard.serving.protobuf import (
    HTTP_STATUSES,
    STATES,
    field_type,
    message_class,
    read_tensor,
    write_tensor,
)

# Of several codes for a status, the first one counts; gateways use two more statuses.
_CODES = {status: code for code, status in reversed(HTTP_STATUSES.items())}
_CODES |= {413: "RESOURCE_EXHAUSTED", 502: "UNAVAILABLE"}
_DTYPES = {"float": "float32", "double": "float64", "string": "object"}
_UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


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
        certificate: the client's certificate and its key; None: it has none.
    """

    address: str
    is_secure: bool
    model: str
    version: int | None = None
    label: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None
    certificate: tuple[Path, Path] | None = None

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this host."""
        return _is_local(urllib.parse.urlsplit(f"//{self.address}").hostname)


def check_token_url(url: str) -> None:
    """Check that a token may be sent to a URL: encrypted, or to this host.

    Raises:
        ValueError: it would be sent over a network in clear text.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme in ("http", "grpc") and not _is_local(parts.hostname):
        message = f"A token would be sent to {parts.hostname} in clear text. "
        raise ValueError(f"{message}Use {parts.scheme}s://, or no token.")


def _is_local(host: str | None) -> bool:
    """Whether a host is this one, which is reached without the environment's proxy."""
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"


class RestConnection:
    """A connection to the REST API."""

    def __init__(self, target: Target):
        import httpx

        self._path = f"/v1/models/{urllib.parse.quote(target.model, safe='')}"
        if target.version is not None:
            self._path += f"/versions/{target.version}"
        elif target.label:
            self._path += f"/labels/{urllib.parse.quote(target.label, safe='')}"
        self._client = httpx.Client(
            base_url=f"{'https' if target.is_secure else 'http'}://{target.address}",
            headers=dict(target.headers),
            verify=_tls_context(target) if target.is_secure else True,
            trust_env=not target.is_local,
        )

    def predict(
        self,
        name: str,
        signature: ClientSignature,
        inputs: Mapping[str, np.ndarray],
        timeout: float,
    ) -> Outputs:
        """Run a signature on one batch.

        Raises:
            ClientError: the request fails or times out.
        """
        values = {key: _to_json(value.tolist()) for key, value in inputs.items()}
        body = json.dumps({"signature_name": name, "inputs": values}).encode()
        outputs = self._request("POST", f"{self._path}:predict", timeout, body)["outputs"]
        if not isinstance(outputs, dict):  # the name of a single output is left out
            outputs = dict.fromkeys(signature.outputs, outputs)
        kinds = {key: output.kind for key, output in signature.outputs.items()}
        return {
            key: np.array(value, _DTYPES.get(kinds[key], kinds[key]))
            for key, value in outputs.items()
        }

    def signatures(self, timeout: float) -> dict[str, ClientSignature]:
        """Return the signatures of the model."""
        body = self._request("GET", f"{self._path}/metadata", timeout)

        def parse(tensors: Mapping[str, Any]) -> dict[str, Input]:
            return {key: _parse_info(info) for key, info in sorted(tensors.items())}

        return {
            name: ClientSignature(parse(entry.get("inputs", {})), parse(entry.get("outputs", {})))
            for name, entry in body["metadata"]["signature_def"]["signature_def"].items()
        }

    def states(self, timeout: float) -> dict[int, str]:
        """Return the states of the model's versions."""
        states = self._request("GET", self._path, timeout)["model_version_status"]
        return {int(entry["version"]): entry["state"] for entry in states}

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _request(self, method: str, path: str, timeout: float, body: bytes | None = None) -> Any:
        with _convert_errors():
            response = self._client.request(method, path, content=body, timeout=timeout)
        if response.status_code != 200:
            raise _parse_error(response.status_code, response.content)
        return json.loads(response.content)


@contextlib.contextmanager
def _convert_errors() -> Iterator[None]:
    """Convert the errors of HTTP."""
    import httpx

    try:
        yield
    except httpx.ConnectTimeout as error:
        raise ClientError("UNAVAILABLE", str(error)) from None
    except httpx.TimeoutException as error:
        raise ClientError("DEADLINE_EXCEEDED", str(error)) from None
    except httpx.HTTPError as error:
        raise ClientError("UNAVAILABLE", str(error) or type(error).__name__) from None


def _tls_context(target: Target) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=target.ca_file)
    if target.certificate is not None:
        chain, key = target.certificate

        def refuse_password() -> str:
            # Without this function OpenSSL asks for the password on the terminal.
            raise ValueError(f"The private key {key} has a password. Give one without a password.")

        context.load_cert_chain(chain, key, password=refuse_password)
    return context


class GrpcConnection:
    """A connection to the gRPC API."""

    def __init__(self, target: Target):
        import grpc

        self._target = target
        options = [*_UNLIMITED, ("grpc.enable_http_proxy", int(not target.is_local))]
        if target.is_secure:
            roots = target.ca_file.read_bytes() if target.ca_file else None
            certificate, key = None, None
            if target.certificate is not None:
                certificate, key = (file.read_bytes() for file in target.certificate)
            credentials = grpc.ssl_channel_credentials(roots, key, certificate)
            self._channel = grpc.secure_channel(target.address, credentials, options)
        else:
            self._channel = grpc.insecure_channel(target.address, options)

    def predict(
        self,
        name: str,
        signature: ClientSignature,
        inputs: Mapping[str, np.ndarray],
        timeout: float,
    ) -> Outputs:
        """Run a signature on one batch; see ``RestConnection.predict``."""
        request = _predict_request(inputs)
        request.model_spec.signature_name = name
        response = self._call("PredictionService/Predict", request, "PredictResponse", timeout)
        return {entry.key: read_tensor(entry.value) for entry in response.outputs}

    def signatures(self, timeout: float) -> dict[str, ClientSignature]:
        """Return the signatures of the model."""
        request = message_class("GetModelMetadataRequest")(metadata_field=["signature_def"])
        method = "PredictionService/GetModelMetadata"
        response = self._call(method, request, "GetModelMetadataResponse", timeout)
        packed = {entry.key: entry.value.value for entry in response.metadata}
        signatures = message_class("SignatureDefMap").FromString(packed["signature_def"])

        def parse(tensors: Iterable[Any]) -> dict[str, Input]:
            entries = sorted(tensors, key=lambda entry: entry.key)
            return {entry.key: _read_info(entry.value) for entry in entries}

        return {
            entry.key: ClientSignature(parse(entry.value.inputs), parse(entry.value.outputs))
            for entry in signatures.signature_def
        }

    def states(self, timeout: float) -> dict[int, str]:
        """Return the states of the model's versions."""
        request, method = message_class("GetModelStatusRequest")(), "ModelService/GetModelStatus"
        response = self._call(method, request, "GetModelStatusResponse", timeout)
        return {status.version: STATES[status.state] for status in response.model_version_status}

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def _call(self, method: str, request: Any, response: str, timeout: float) -> Any:
        with _convert_grpc_errors():
            body = self._start(method, request, timeout)
        return message_class(response).FromString(body)

    def _start(self, method: str, request: Any, timeout: float) -> Any:
        request.model_spec.name = self._target.model
        if self._target.version is not None:
            request.model_spec.version.value = self._target.version
        elif self._target.label:
            request.model_spec.version_label = self._target.label
        call = self._channel.unary_unary(f"/tensorflow.serving.{method}")
        metadata = tuple(self._target.headers.items())
        return call(request.SerializeToString(), timeout=timeout, metadata=metadata)


def _parse_info(info: Mapping[str, Any]) -> Input:
    """Return an input or output from the JSON of its ``TensorInfo``."""
    sizes = info["tensor_shape"].get("dim", [])
    depth = int(sizes[-1].get("size", -1)) if sizes else -1
    return Input(info["dtype"].removeprefix("DT_").lower(), len(sizes), depth)


def _read_info(info: Any) -> Input:
    """Return an input or output from its ``TensorInfo``."""
    sizes = info.tensor_shape.dim
    depth = sizes[-1].size if sizes else -1
    return Input(field_type(info.dtype), len(sizes), depth)


def _predict_request(inputs: Mapping[str, np.ndarray]) -> Any:
    request = message_class("PredictRequest")()
    for key, value in inputs.items():
        write_tensor(request.inputs.add(key=key).value, value)
    return request


@contextlib.contextmanager
def _convert_grpc_errors() -> Iterator[None]:
    import grpc

    try:
        yield
    except grpc.RpcError as error:
        raise ClientError(error.code().name, error.details()) from None


def _parse_error(status: int, body: bytes) -> ClientError:
    """Convert a REST response that is an error."""
    try:
        message = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        message = body[:500].decode("utf-8", errors="replace").strip() or f"HTTP {status}"
    return ClientError(_CODES.get(status, "INTERNAL" if status >= 500 else "UNKNOWN"), message)


def _to_json(value: Any) -> Any:
    """Convert bytes in nested lists to text, or to base64 if they are not UTF-8."""
    if isinstance(value, list):
        return [_to_json(element) for element in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode("ascii")}
