"""Limits for the calls of gRPC: how many run at once, and how much their clients leave unread."""

from __future__ import annotations

import asyncio
import collections
import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
from grpc import StatusCode

from regard.serving.server.client_sockets import disconnect, parse_peer
from regard.serving.server.errors import ServingError

_MAX_CALLS = 1000
_MAX_UNREAD = 1000
# Between two checks, because each of them may read all descriptors of the process.
_CHECK_SECONDS = 0.25

Error = tuple[StatusCode, str]


@dataclass(eq=False)
class _Response:
    peer: str
    size: int


class Calls:
    """The calls of gRPC, until their responses are sent.

    A client of HTTP/2 decides how much of a response it receives. gRPC keeps the rest as long as
    the connection is open, and counts the call as running. So the server counts running calls
    itself, and apart from them the responses that gRPC has not sent. When these are too many, or
    too large together, connections are closed, the one with the oldest response first: the
    responses of a client that reads are young.

    Args:
        max_unread_bytes: limit for all unread responses together.

    Attributes:
        port: the port of the server.
    """

    def __init__(self, max_unread_bytes: int):
        self.port = 0
        self._count = 0
        self._max_unread_bytes, self._unread_bytes = max_unread_bytes, 0
        self._unread: dict[_Response, None] = {}  # the oldest first
        self._check: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def hold_place(self) -> Iterator[None]:
        """Count a running call until the end of the block.

        Raises:
            ServingError: too many others run.
        """
        if self._count >= _MAX_CALLS:
            message = f"{_MAX_CALLS} calls are in progress. Try again later."
            raise ServingError(StatusCode.RESOURCE_EXHAUSTED, message)
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    async def finish(self, context: Any, response: bytes | Error) -> bytes:
        """Return the response of a call to gRPC, or end the call with an error."""
        if isinstance(response, bytes):
            self.count_response(context, len(response))
            return response
        code, message = response
        self.count_response(context, len(message))
        return bytes(await context.abort(code, message))

    def count_response(self, context: Any, size: int) -> None:
        """Count a response as unread until gRPC has sent it.

        Args:
            context: the call's context; the call is about to end.
            size: the size of the message in bytes.
        """
        response = _Response(context.peer(), size)
        self._unread[response] = None
        self._unread_bytes += size
        context.add_done_callback(lambda _: self._remove(response))
        if self._check is None and self._is_too_much_unread:
            loop = asyncio.get_running_loop()
            self._check = loop.call_later(_CHECK_SECONDS, self._disconnect_oldest)

    def disconnect(self, peers: Iterable[str]) -> None:
        """Close connections.

        Args:
            peers: gRPC's names of their clients.
        """
        disconnect({parse_peer(peer) for peer in peers}, self.port)

    def close(self) -> None:
        """End the checks."""
        if self._check is not None:
            self._check.cancel()

    @property
    def _is_too_much_unread(self) -> bool:
        return len(self._unread) > _MAX_UNREAD or self._unread_bytes > self._max_unread_bytes

    def _remove(self, response: _Response) -> None:
        if response in self._unread:
            del self._unread[response]
            self._unread_bytes -= response.size

    def _disconnect_oldest(self) -> None:
        self._check = None
        by_peer = collections.defaultdict(list)
        for response in self._unread:
            by_peer[response.peer].append(response)
        peers = []
        for peer, responses in by_peer.items():
            if not self._is_too_much_unread:
                break
            peers.append(peer)
            for response in responses:
                self._remove(response)
        if peers:
            self.disconnect(peers)


class UnknownMethods(grpc.GenericRpcHandler):
    """Rejects calls of unknown methods, and counts these responses too.

    Args:
        calls: counts them.
    """

    def __init__(self, calls: Calls):
        self._calls = calls

    def service(self, handler_call_details: object) -> grpc.RpcMethodHandler:
        """Return the handler of any method."""
        return grpc.stream_unary_rpc_method_handler(self._reject)

    async def _reject(self, _: object, context: Any) -> bytes:
        return await self._calls.finish(context, (StatusCode.UNIMPLEMENTED, "Method not found!"))
