"""The REST API, on TensorFlow Serving's paths."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import unquote

from grpc import StatusCode
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from regard.serving.protobuf import field_type, message_class
from regard.serving.server.admission import SMALL_BYTES, Admission
from regard.serving.server.errors import ServingError, as_serving_error, invalid
from regard.serving.server.manager import ModelManager
from regard.serving.server.rest_body import read_body
from regard.serving.server.rest_json import dump, dump_predictions, parse_predict
from regard.serving.server.versions import ModelSpec, Version

METRICS_PATH = "/monitoring/prometheus/metrics"
# The paths of the Open Inference Protocol, for the probes of Kubernetes.
LIVE_PATH, READY_PATH = "/v2/health/live", "/v2/health/ready"
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_VERSION = r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_POST_PATH = re.compile(rf"/v1/models/(?P<model>[^/:]+){_VERSION}:predict", re.I)
_GET_PATH = re.compile(rf"/v1/models/(?P<model>[^/:]+){_VERSION}(?:/(?P<metadata>metadata))?", re.I)
_MAX_VERSION = 2**63 - 1


class RestApi:
    """Handles HTTP requests.

    Args:
        manager: the models.
        admission: accepts or rejects requests.
        timeout: limit for one request, in seconds.
        max_bytes: limit for the body of a request.
        is_draining: whether the server is about to stop.
    """

    def __init__(
        self,
        manager: ModelManager,
        admission: Admission,
        timeout: float,
        max_bytes: int,
        is_draining: Callable[[], bool],
    ):
        self._manager, self._admission = manager, admission
        self._timeout, self._max_bytes = timeout, max_bytes
        self._is_draining = is_draining

    def routes(self) -> list[Route]:
        """Return the routes, the last of which matches every path."""
        return [
            Route(METRICS_PATH, self.metrics, methods=["GET"]),
            Route(LIVE_PATH, self.live, methods=["GET"]),
            Route(READY_PATH, self.ready, methods=["GET"]),
            Route("/{path:path}", self.handle, methods=_METHODS),
        ]

    async def metrics(self, request: Request) -> Response:
        """Return the metrics for Prometheus."""
        return Response(self._manager.metrics.text(), media_type="text/plain")

    async def live(self, request: Request) -> Response:
        """Confirm that the server handles requests."""
        return Response(b"", 200)

    async def ready(self, request: Request) -> Response:
        """Return status 200 if the server can run models and does not stop, otherwise 503."""
        if self._is_draining():
            return error_response(ServingError(StatusCode.UNAVAILABLE, "The server is stopping."))
        if self._manager.is_ready:
            return Response(b"", 200)
        message = "No model is available, or all threads exceed their time limit."
        return error_response(ServingError(StatusCode.UNAVAILABLE, message))

    async def handle(self, request: Request) -> Response:
        """Return the result of a request to any path, or its error as JSON."""
        path = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1")
        if not path.lower().startswith("/v1/"):
            return Response("Not Found", 404, media_type="text/plain")
        if request.method == "OPTIONS":
            has_origin = re.match("https?://", request.headers.get("origin", ""))
            return Response(b"", 200 if has_origin else 400)
        try:
            return await asyncio.wait_for(self._dispatch(request, path), self._timeout)
        except asyncio.TimeoutError:
            message = f"Timed out after {self._timeout:g} s."
            return error_response(ServingError(StatusCode.DEADLINE_EXCEEDED, message))
        except Exception as exception:
            return error_response(as_serving_error(exception))

    async def _dispatch(self, request: Request, path: str) -> Response:
        if request.method == "POST" and (match := _POST_PATH.fullmatch(path)):
            self._admission.check_token(request.headers.get("authorization", ""))
            return await self._predict(_parse_spec(match), request)
        if request.method == "GET" and (match := _GET_PATH.fullmatch(path)):
            spec = _parse_spec(match)
            if match["metadata"]:
                return _response([_dump_metadata(spec.model, self._manager.find(spec))])
            return _response([_dump_status(self._manager.list_states(spec))])
        raise invalid(f"Unknown request: {request.method} {path}")

    async def _predict(self, spec: ModelSpec, request: Request) -> Response:
        convert = self._admission.convert
        with (
            self._manager.track_request(spec.model, "predict", "REST"),
            self._admission.hold() as hold,
        ):
            content = await read_body(request, self._admission, self._max_bytes, hold)
            types = self._manager.find(spec).loaded.input_types
            body = await convert(len(content), parse_predict, content, types)
            prediction = await self._manager.predict(spec, body.signature, body.inputs)
            size = sum(tensor.nbytes for tensor in prediction.outputs.values())
            outputs = prediction.outputs
            return _response(await convert(size, dump_predictions, outputs, body.is_row_format))


def _response(parts: list[bytes]) -> Response:
    size = sum(map(len, parts))
    if size <= SMALL_BYTES:
        return Response(b"".join(parts), media_type="application/json")

    async def stream() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    headers = {"content-length": str(size)}
    return StreamingResponse(stream(), headers=headers, media_type="application/json")


def error_response(error: ServingError) -> Response:
    """Return an error as JSON."""
    body, headers = dump({"error": error.message}), {}
    if error.retry_seconds:
        headers["retry-after"] = str(error.retry_seconds)
    return Response(body, error.http_status, headers, media_type="application/json")


def _parse_spec(match: re.Match[str]) -> ModelSpec:
    digits = (match["version"] or "").lstrip("0")
    if len(digits) > len(str(_MAX_VERSION)) or int(digits or 0) > _MAX_VERSION:
        raise invalid(f"The version is larger than {_MAX_VERSION}.")
    version = int(digits or 0) if match["version"] else None
    return ModelSpec(unquote(match["model"]), version, unquote(match["label"] or ""))


def _dump_status(versions: list[Version]) -> bytes:
    states = [
        {
            "version": str(version.number),
            "state": version.state,
            "status": {
                "error_code": version.error.code.name if version.error else "OK",
                "error_message": version.error.message if version.error else "",
            },
        }
        for version in versions
    ]
    return dump({"model_version_status": states})


def _dump_metadata(name: str, version: Version) -> bytes:
    """Return the signatures of a version, with the field names of the protocol buffer."""
    entries = message_class("SignatureDefMap").FromString(version.loaded.signature_map)
    signatures = {
        entry.key: {
            "inputs": {info.key: _describe(info.value) for info in entry.value.inputs},
            "outputs": {info.key: _describe(info.value) for info in entry.value.outputs},
            "method_name": entry.value.method_name,
            "defaults": {},
        }
        for entry in entries.signature_def
    }
    spec = {"name": name, "signature_name": "", "version": str(version.number)}
    # The outer key names the metadata, the inner one is the field of SignatureDefMap.
    return dump({"model_spec": spec, "metadata": {"signature_def": {"signature_def": signatures}}})


def _describe(tensor: Any) -> dict[str, Any]:
    dims = [{"size": str(dim.size), "name": dim.name} for dim in tensor.tensor_shape.dim]
    return {
        "name": tensor.name,
        "dtype": f"DT_{field_type(tensor.dtype).upper()}",
        "tensor_shape": {"dim": dims, "unknown_rank": tensor.tensor_shape.unknown_rank},
    }
