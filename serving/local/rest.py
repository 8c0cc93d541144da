"""The REST API, on the paths and with the bodies of TensorFlow Serving."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from serving.local import json_in, json_out
from serving.local.json_text import pretty
from serving.local.manager import Manager
from serving.local.metadata import metadata_json
from serving.local.predictions import Wanted, counted, not_of_this_kind, predict
from serving.local.status import Code, ServingError, failure, invalid
from serving.local.versions import Version

METRICS = "/monitoring/prometheus/metrics"
_VERSION = r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_ASK = re.compile(
    rf"/v1/models/(?P<model>[^/:]+){_VERSION}:(?P<method>classify|regress|predict)", re.I
)
_LOOK = re.compile(
    rf"/v1/models(?:/(?P<model>[^/:]+))?{_VERSION}(?:/(?P<metadata>metadata))?", re.I
)
_NOT_FOUND = (
    b"<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1></body></html>\n"
)
_GREATEST = 2**63 - 1


class Rest:
    """Answers HTTP.

    Args:
        manager: of the models.
        timeout: seconds that a request may take.
        most_bytes: of a request's body.
    """

    def __init__(self, manager: Manager, timeout: float = 30.0, most_bytes: int = 64 << 20):
        self._manager, self._timeout, self._most_bytes = manager, timeout, most_bytes

    def routes(self) -> list[Route]:
        """All paths, whatever the method; what is none of the API's is 404, in HTML."""
        methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
        return [
            Route(METRICS, self.metrics, methods=["GET"]),
            Route("/{path:path}", self.any, methods=methods),
        ]

    async def metrics(self, request: Request) -> Response:
        """What is counted, for Prometheus."""
        return Response(self._manager.metrics.text(), media_type="text/plain")

    async def any(self, request: Request) -> Response:
        """A request to any path."""
        path = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1")
        if not path.lower().startswith("/v1/"):
            return Response(_NOT_FOUND, 404, media_type="text/html")
        if request.method == "OPTIONS":
            fine = re.match("https?://", request.headers.get("origin", ""))
            return Response(b"", 200 if fine else 400)
        return await self._answered(lambda: self._api(request, path))

    async def _api(self, request: Request, path: str) -> bytes:
        if request.method == "POST" and (asked := _ASK.fullmatch(path)):
            return await self._ask(asked, await self._body(request))
        if request.method == "GET" and (looked := _LOOK.fullmatch(path)):
            return self._look(looked)
        raise invalid("Malformed request: ", request.method, " ", path)

    async def _answered(self, make: Callable[[], Awaitable[bytes]]) -> Response:
        """The answer as JSON, also if it is an error."""
        try:
            body = await asyncio.wait_for(make(), self._timeout)
            return Response(body, 200, media_type="application/json")
        except asyncio.TimeoutError:
            failed = ServingError(Code.DEADLINE_EXCEEDED, "Timed out while waiting for the model.")
        except ClientDisconnect:
            failed = ServingError(Code.CANCELLED, "The client went away.")
        except Exception as error:
            failed = failure(error)
        return Response(
            json_out.error(failed.message), failed.code.http, media_type="application/json"
        )

    async def _ask(self, match: re.Match[str], body: bytes) -> bytes:
        name, version, label = _spec(match)
        method = match["method"].lower()
        with counted(self._manager, name, method, "REST"):
            if method != "predict":
                signature = _examples_for(method, body)
                wanted = Wanted(name, version, label, signature)
                raise not_of_this_kind(self._manager, wanted, method)

            def kinds(signature: str) -> json_in.Kinds:
                found = self._manager.find(name, version, label)
                assert found.servable is not None
                return found.servable.kinds(signature)

            signature, inputs, by_rows = json_in.predict_request(body, kinds)
            wanted = Wanted(name, version, label, signature)
            answer = await predict(self._manager, wanted, inputs)
            write = json_out.by_rows if by_rows else json_out.by_columns
            return write(answer.outputs)

    def _look(self, match: re.Match[str]) -> bytes:
        if not match["model"]:
            raise invalid("Missing model name in request.")
        name, version, label = _spec(match)
        if match["metadata"]:
            found = self._manager.find(name, version, label)
            return metadata_json(name, found)
        return _status(self._manager.states(name, version))

    async def _body(self, request: Request) -> bytes:
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self._most_bytes:
                told = f"The body has more than {self._most_bytes} bytes."
                raise ServingError(Code.RESOURCE_EXHAUSTED, told)
            parts.append(part)
        return b"".join(parts)


def _spec(match: re.Match[str]) -> tuple[str, int | None, str]:
    """The model's name, and the version's number or label."""
    version = None
    if match["version"]:
        version = int(match["version"])
        if version > _GREATEST:
            raise invalid("Failed to convert version: ", match["version"], " to numeric.")
    return unquote(match["model"]), version, unquote(match["label"] or "")


def _status(versions: list[Version]) -> bytes:
    told = [
        {
            "version": str(one.number),
            "state": one.state,
            "status": {
                "error_code": one.error.code.name if one.error else "OK",
                "error_message": one.error.message if one.error else "",
            },
        }
        for one in versions
    ]
    return pretty({"model_version_status": told})


def _examples_for(method: str, body: bytes) -> str:
    """The signature that a body with examples names.

    Raises:
        ServingError: it has none.
    """
    document = json_in.parse(body)
    if "examples" not in document:
        told = f" When method is {method}, key 'examples' is expected and was not found"
        raise invalid("JSON Value: ", json_in.shown(document), told)
    return str(document.get("signature_name", ""))
