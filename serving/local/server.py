"""The server: both protocols on their ports, from the first model loaded to the last answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import uvicorn
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from serving.local.manager import Manager
from serving.local.rest import Rest
from serving.local.rpc import MODEL, PREDICTION, services

log = logging.getLogger("regard.serve")


@dataclass(frozen=True)
class Listening:
    """Where and how a server is reached.

    Attributes:
        host: the address; the machine's own unless told otherwise.
        grpc_port: 0 for any that is free; None for no gRPC.
        rest_port: 0 for any that is free; None for no REST.
        rest_timeout: seconds that a REST request may take; over gRPC the client says it.
        most_bytes: of a request.
        certificate: files with the chain of certificates and the private key; None: no TLS.
    """

    host: str = "127.0.0.1"
    grpc_port: int | None = 8500
    rest_port: int | None = 8501
    rest_timeout: float = 30.0
    most_bytes: int = 64 << 20
    certificate: tuple[Path, Path] | None = None


class _Uvicorn(uvicorn.Server):
    """One that leaves signals to the whole server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """Serves the models of a manager until it is stopped.

    Args:
        manager: of the models.
        listening: where.
        routes: what is there over HTTP beside the API, such as a page.

    Attributes:
        grpc_port: the port, once it has started; None without gRPC.
        rest_port: likewise.
    """

    def __init__(self, manager: Manager, listening: Listening, routes: Sequence[BaseRoute] = ()):
        self._manager, self._listening, self._routes = manager, listening, list(routes)
        self.grpc_port: int | None = None
        self.rest_port: int | None = None
        self._grpc: Any = None
        self._health: Any = None
        self._rest: _Uvicorn | None = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Takes its ports, loads the models, then takes requests.

        Raises:
            OSError: a port cannot be had.
        """
        listening, socket = self._listening, None
        if listening.grpc_port is not None:
            self._bind_grpc(listening.grpc_port)
        if listening.rest_port is not None:
            socket = await _bound(listening.host, listening.rest_port)
            self.rest_port = socket.getsockname()[1]
        await self._manager.start()
        if self._grpc is not None:
            await self._grpc.start()
            for service in ("", PREDICTION, MODEL):
                await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
        if socket is not None:
            await self._start_rest(socket)

    async def stop(self, grace: float = 30.0) -> None:
        """Takes no more requests, and answers those that it has, for so many seconds at most."""
        stops: list[Any] = []
        if self._grpc is not None:
            await self._health.enter_graceful_shutdown()
            stops.append(self._grpc.stop(grace))
        if self._rest is not None and self._serving is not None:
            self._rest.should_exit = True
            stops.append(asyncio.wait([self._serving], timeout=grace))
        await asyncio.gather(*stops)
        await self._manager.close()

    def _bind_grpc(self, port: int) -> None:
        listening = self._listening
        self._grpc = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", listening.most_bytes),
                ("grpc.max_send_message_length", -1),
                # Otherwise a second server would share the port, and half of the requests.
                ("grpc.so_reuseport", 0),
            ]
        )
        self._grpc.add_generic_rpc_handlers(tuple(services(self._manager)))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._grpc)
        address = f"{_bracketed(listening.host)}:{port}"
        try:
            if listening.certificate is None:
                self.grpc_port = self._grpc.add_insecure_port(address)
            else:
                chain, key = (path.read_bytes() for path in listening.certificate)
                credentials = grpc.ssl_server_credentials([(key, chain)])
                self.grpc_port = self._grpc.add_secure_port(address, credentials)
        except RuntimeError:
            raise OSError(f"{address} cannot be bound; it may be in use") from None

    async def _start_rest(self, socket: Any) -> None:
        listening = self._listening
        rest = Rest(self._manager, listening.rest_timeout, listening.most_bytes)
        tls: dict[str, Any] = {}
        if listening.certificate is not None:
            chain, key = listening.certificate
            tls = {"ssl_certfile": str(chain), "ssl_keyfile": str(key)}
        config = uvicorn.Config(
            Starlette(debug=False, routes=[*self._routes, *rest.routes()]),
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            **tls,
        )
        self._rest = _Uvicorn(config)
        self._serving = asyncio.get_running_loop().create_task(self._rest.serve([socket]))
        while not self._rest.started:
            if self._serving.done():
                await self._serving
                raise OSError("the REST server has not started")
            await asyncio.sleep(0.01)


async def _bound(host: str, port: int) -> Any:
    """A socket; uvicorn itself would end the process where a port cannot be had."""
    import socket

    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise OSError(f"{host}: {error.strerror}") from None
    family, kind, protocol, _, address = found[0]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
    except OSError as error:
        made.close()
        raise OSError(f"{host}:{port} cannot be bound: {error.strerror}") from None
    return made


def _bracketed(host: str) -> str:
    """An address as it stands before a port."""
    return f"[{host}]" if ":" in host else host
