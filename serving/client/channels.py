"""Connections: they send messages and give answers, sync and async, over gRPC and HTTP."""

from __future__ import annotations

import time
from typing import Any

from serving.client.messages import RestMessages, Target
from serving.client.replies import ClientError


def left(deadline: float) -> float:
    """Seconds until a deadline.

    Raises:
        ClientError: there are none.
    """
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise ClientError("DEADLINE_EXCEEDED", "the time for this call is over")
    return seconds


class Rest:
    """HTTP, sync."""

    def __init__(self, target: Target):
        import httpx

        self._client = httpx.Client(**_http(target))

    def send(self, message: tuple[str, str, bytes | None], timeout: float) -> bytes:
        """The body of the answer.

        Raises:
            ClientError: it is none, or there is none in time.
        """
        import httpx

        method, path, body = message
        try:
            response = self._client.request(method, path, content=body, timeout=timeout)
        except httpx.HTTPError as error:
            raise _unreached(error) from None
        return _answered(response)

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()


class AsyncRest:
    """HTTP, async."""

    def __init__(self, target: Target):
        import httpx

        self._client = httpx.AsyncClient(**_http(target))

    async def send(self, message: tuple[str, str, bytes | None], timeout: float) -> bytes:
        """As ``Rest.send``."""
        import httpx

        method, path, body = message
        try:
            response = await self._client.request(method, path, content=body, timeout=timeout)
        except httpx.HTTPError as error:
            raise _unreached(error) from None
        return _answered(response)

    async def close(self) -> None:
        """Ends the connection."""
        await self._client.aclose()


class Grpc:
    """gRPC, sync."""

    def __init__(self, target: Target):
        import grpc

        self._channel = _opened(grpc, target)
        self._stubs = _stubs(self._channel)
        self._headers = tuple(target.headers.items())

    def send(self, message: tuple[str, str, Any], timeout: float) -> Any:
        """The answer.

        Raises:
            ClientError: it is an error, or there is none in time.
        """
        import grpc

        service, method, request = message
        call = getattr(self._stubs[service], method)
        try:
            return call(request, timeout=timeout, metadata=self._headers)
        except grpc.RpcError as error:
            raise ClientError(error.code().name, error.details()) from None

    def close(self) -> None:
        """Ends the connection."""
        self._channel.close()


class AsyncGrpc:
    """gRPC, async."""

    def __init__(self, target: Target):
        import grpc

        self._channel = _opened(grpc.aio, target)
        self._stubs = _stubs(self._channel)
        self._headers = tuple(target.headers.items())

    async def send(self, message: tuple[str, str, Any], timeout: float) -> Any:
        """As ``Grpc.send``."""
        import grpc

        service, method, request = message
        call = getattr(self._stubs[service], method)
        try:
            return await call(request, timeout=timeout, metadata=self._headers)
        except grpc.RpcError as error:
            raise ClientError(error.code().name, error.details()) from None

    async def close(self) -> None:
        """Ends the connection."""
        await self._channel.close()


def _http(target: Target) -> dict[str, Any]:
    import ssl

    scheme = "https" if target.secure else "http"
    options: dict[str, Any] = {
        "base_url": f"{scheme}://{target.address}",
        "headers": dict(target.headers),
    }
    if target.authority is not None:
        options["verify"] = ssl.create_default_context(cafile=str(target.authority))
    return options


def _unreached(error: Exception) -> ClientError:
    import httpx

    late = isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout)
    reason = str(error) or type(error).__name__
    return ClientError("DEADLINE_EXCEEDED" if late else "UNAVAILABLE", reason)


def _answered(response: Any) -> bytes:
    if response.status_code != 200:
        raise RestMessages.error(response.status_code, response.content)
    return response.content


def _opened(grpc: Any, target: Target) -> Any:
    """A channel of ``grpc`` or of ``grpc.aio``."""
    from grpc import ssl_channel_credentials

    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    if not target.secure:
        return grpc.insecure_channel(target.address, options=options)
    trusted = None if target.authority is None else target.authority.read_bytes()
    return grpc.secure_channel(
        target.address, ssl_channel_credentials(root_certificates=trusted), options=options
    )


def _stubs(channel: Any) -> dict[str, Any]:
    from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc

    return {
        "PredictionService": prediction_service_pb2_grpc.PredictionServiceStub(channel),
        "ModelService": model_service_pb2_grpc.ModelServiceStub(channel),
    }
