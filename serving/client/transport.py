"""Connections over HTTP and gRPC, synchronous and asynchronous; each sends a request's bytes."""

from __future__ import annotations

import time
from typing import Any

from regard.serving.client.conversion import ClientError
from regard.serving.client.messages import Request, Target, parse_http_error

_UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def seconds_until(deadline: float) -> float:
    """Return the seconds until a deadline.

    Raises:
        ClientError: the deadline has passed.
    """
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise ClientError("DEADLINE_EXCEEDED", "The call timed out.")
    return seconds


class HttpTransport:
    """HTTP."""

    def __init__(self, target: Target):
        import httpx

        self._client = httpx.Client(**_http_options(target))

    def send(self, request: Request, timeout: float) -> bytes:
        """Return the body of the response.

        Raises:
            ClientError: the request fails or times out.
        """
        import httpx

        method = "GET" if request.body is None else "POST"
        try:
            response = self._client.request(
                method, request.path, content=request.body, timeout=timeout
            )
        except httpx.HTTPError as error:
            raise _connection_error(error) from None
        return _body(response)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class AsyncHttpTransport:
    """HTTP with coroutines."""

    def __init__(self, target: Target):
        import httpx

        self._client = httpx.AsyncClient(**_http_options(target))

    async def send(self, request: Request, timeout: float) -> bytes:
        """See ``HttpTransport.send``."""
        import httpx

        method = "GET" if request.body is None else "POST"
        try:
            response = await self._client.request(
                method, request.path, content=request.body, timeout=timeout
            )
        except httpx.HTTPError as error:
            raise _connection_error(error) from None
        return _body(response)

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()


class GrpcTransport:
    """gRPC."""

    def __init__(self, target: Target):
        import grpc

        self._channel = _open_channel(grpc, target)
        self._metadata = tuple(target.headers.items())

    def send(self, request: Request, timeout: float) -> bytes:
        """Return the bytes of the response.

        Raises:
            ClientError: the request fails or times out.
        """
        import grpc

        call = self._channel.unary_unary(request.path)
        try:
            return call(request.body, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise ClientError(error.code().name, error.details()) from None

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


class AsyncGrpcTransport:
    """gRPC with coroutines."""

    def __init__(self, target: Target):
        import grpc

        self._channel = _open_channel(grpc.aio, target)
        self._metadata = tuple(target.headers.items())

    async def send(self, request: Request, timeout: float) -> bytes:
        """See ``GrpcTransport.send``."""
        import grpc

        call = self._channel.unary_unary(request.path)
        try:
            return await call(request.body, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise ClientError(error.code().name, error.details()) from None

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


def _http_options(target: Target) -> dict[str, Any]:
    import ssl

    scheme = "https" if target.is_secure else "http"
    options: dict[str, Any] = {
        "base_url": f"{scheme}://{target.address}",
        "headers": dict(target.headers),
    }
    if target.ca_file is not None:
        options["verify"] = ssl.create_default_context(cafile=str(target.ca_file))
    return options


def _connection_error(error: Exception) -> ClientError:
    import httpx

    is_late = isinstance(error, httpx.TimeoutException)
    is_late = is_late and not isinstance(error, httpx.ConnectTimeout)
    reason = str(error) or type(error).__name__
    return ClientError("DEADLINE_EXCEEDED" if is_late else "UNAVAILABLE", reason)


def _body(response: Any) -> bytes:
    if response.status_code != 200:
        raise parse_http_error(response.status_code, response.content)
    return response.content


def _open_channel(grpc: Any, target: Target) -> Any:
    """Open a channel of ``grpc`` or of ``grpc.aio``."""
    from grpc import ssl_channel_credentials

    if not target.is_secure:
        return grpc.insecure_channel(target.address, options=_UNLIMITED)
    roots = None if target.ca_file is None else target.ca_file.read_bytes()
    credentials = ssl_channel_credentials(root_certificates=roots)
    return grpc.secure_channel(target.address, credentials, options=_UNLIMITED)
