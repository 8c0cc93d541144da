"""gRPC's health service, whose watches are few and end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc import StatusCode
from grpc_health.v1 import health_pb2

from regard.serving.server.errors import ServingError, as_serving_error
from regard.serving.server.grpc_api import Receiver
from regard.serving.server.grpc_calls import Calls, Error

MAX_WATCHES = 100
# A client watches again when its stream ends.
_WATCH_SECONDS = 600.0
_SEND_SECONDS = 10.0  # for a client to read a status
_READY_SECONDS = 1.0  # between two looks of a watch at whether the server is ready
_SERVING, _NOT_SERVING, _UNKNOWN = (
    health_pb2.HealthCheckResponse.ServingStatus.Value(name)
    for name in ("SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
)


class HealthService:
    """Answers whether the services are ready.

    Args:
        services: their names; "" stands for the whole server.
        receiver: receives the messages.
        calls: counts the calls and their responses.
        is_ready: whether the server can run models. If it cannot, the named services are not
            ready, but the whole server is alive.
    """

    def __init__(
        self,
        services: Iterable[str],
        receiver: Receiver,
        calls: Calls,
        is_ready: Callable[[], bool] = lambda: True,
    ):
        self._is_ready = is_ready
        self._status = dict.fromkeys(services, _NOT_SERVING)
        self._receiver, self._calls = receiver, calls
        self._watches, self._is_closed = 0, False
        self._change = asyncio.Event()

    def start(self) -> None:
        """Notify clients that all services are ready."""
        self._change_status(_SERVING)

    def close(self) -> None:
        """Notify clients that no service is ready any more, and end the watches."""
        self._is_closed = True
        self._change_status(_NOT_SERVING)

    def _change_status(self, status: int) -> None:
        self._status = dict.fromkeys(self._status, status)
        self._change.set()
        self._change = asyncio.Event()

    def create_handler(self) -> grpc.GenericRpcHandler:
        """Return the handler of the service."""
        methods = {
            "Check": grpc.stream_unary_rpc_method_handler(self._check),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watch),
        }
        return grpc.method_handlers_generic_handler("grpc.health.v1.Health", methods)

    async def _check(self, _: object, context: Any) -> bytes:
        try:
            with self._calls.hold_place():
                service = await self._receive(context)
        except ServingError as error:
            service = error.code, error.grpc_message
        if not isinstance(service, str):
            response: bytes | Error = service
        elif service not in self._status:
            response = StatusCode.NOT_FOUND, "There is no service of this name."
        else:
            response = _response(self._current(service))
        return await self._calls.finish(context, response)

    def _current(self, service: str) -> int:
        if service and self._status.get(service) == _SERVING and not self._is_ready():
            return _NOT_SERVING
        return self._status.get(service, _UNKNOWN)

    async def _watch(self, _: object, context: Any) -> None:
        if self._watches >= MAX_WATCHES:
            message = f"{MAX_WATCHES} clients watch the server. Try again later, or use Check."
            await self._calls.finish(context, (StatusCode.RESOURCE_EXHAUSTED, message))
        self._watches += 1
        try:
            service = await self._receive(context)
            if isinstance(service, str):
                await self._send_changes(service, context)
        finally:
            self._watches -= 1
        if not isinstance(service, str):
            await self._calls.finish(context, service)
        self._calls.count_response(context, 0)

    async def _send_changes(self, service: str, context: Any) -> None:
        """Send each new status until the watch is over."""
        end, previous = time.monotonic() + _WATCH_SECONDS, None
        while (seconds := end - time.monotonic()) > 0:
            # The server may close while a status is sent: only one read afterwards is the last.
            change, is_last = self._change, self._is_closed
            status = self._current(service)
            if status != previous:
                await self._send(status, context)
            previous = status
            if is_last:
                return
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(change.wait(), min(seconds, _READY_SECONDS))

    async def _send(self, status: int, context: Any) -> None:
        """Send a status, and close the connection if the client does not read it."""
        loop, disconnect = asyncio.get_running_loop(), self._calls.disconnect
        timer = loop.call_later(_SEND_SECONDS, disconnect, [context.peer()])
        try:
            await context.write(_response(status))
        finally:
            timer.cancel()

    async def _receive(self, context: Any) -> str | Error:
        """Return the service that a message names, or the code and text of an error."""
        try:
            content = await self._receiver.receive_bytes(context)
            return str(health_pb2.HealthCheckRequest.FromString(content).service)
        except DecodeError:
            return StatusCode.INVALID_ARGUMENT, "The request is not a valid HealthCheckRequest."
        except Exception as exception:
            error = as_serving_error(exception)
            return error.code, error.grpc_message


def _response(status: int) -> bytes:
    return bytes(health_pb2.HealthCheckResponse(status=status).SerializeToString())
