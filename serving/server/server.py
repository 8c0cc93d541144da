"""The server: binds both ports, loads the models, and shuts down gracefully."""

import asyncio
import contextlib
import logging
import resource
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

import grpc
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from regard.serving.server.admission import Admission
from regard.serving.server.bearer_tokens import BearerTokens
from regard.serving.server.certificates import Certificates
from regard.serving.server.connections import Connections
from regard.serving.server.file_watch import FileWatch
from regard.serving.server.grpc_api import SERVICES, Receiver, create_handlers
from regard.serving.server.grpc_calls import Calls, UnknownMethods
from regard.serving.server.grpc_gate import ResponseGate
from regard.serving.server.grpc_health import HealthService
from regard.serving.server.http_access import AccessMiddleware
from regard.serving.server.manager import ModelManager
from regard.serving.server.options import ServerOptions
from regard.serving.server.rest_api import RestApi
from regard.serving.server.tls_files import TlsFiles

# Of a connection, those included that are cancelled or answered but not yet cleaned up: gRPC
# refuses more. A client that always has 64 calls in progress was refused with a limit of 100.
_MAX_STREAMS = 256
_MAX_HEADER_BYTES = 16 << 10
# gRPC refuses new connections when there are too many, so slow and idle ones must end soon. Clients
# connect again without an error.
_HANDSHAKE_MS, _IDLE_MS = 2000, 2000
# asyncio accepts this many connections before it looks at the first, so it limits the descriptors.
_ACCEPTED_AT_ONCE = 64
_WAITING_CONNECTIONS = 2048  # in the kernel
# A connection that stays idle for this time is closed; otherwise the next response says so.
_DRAIN_SECONDS, _DRAIN_CHECK_SECONDS = 3.0, 0.05
_ACCEPTING_SHARE, _DRAIN_QUIET_SECONDS = 2 / 3, 0.5
log = logging.getLogger("regard.serve")


class _Uvicorn(uvicorn.Server):
    """An HTTP server that leaves signals to the process and closes connections in time."""

    def __init__(self, config: uvicorn.Config, connections: Connections):
        super().__init__(config)
        self._connections = connections

    async def on_tick(self, counter: int) -> bool:
        """Close connections, once a second."""
        if counter % 10 == 0:
            self._connections.sweep()
        return await super().on_tick(counter)

    async def drain(self, seconds: float) -> None:
        """Announce the end in all responses, and wait for clients to leave.

        A client that closes its connection may open another one for its next request. So new
        connections are accepted in the first part of the time, and the rest is for those that were
        opened last.
        """
        start = time.monotonic()
        self._connections.drain()
        await self._wait_for_clients(start + _ACCEPTING_SHARE * seconds, _DRAIN_QUIET_SECONDS)
        if last := self._stop_accepting():
            await asyncio.wait(last, timeout=start + seconds - time.monotonic())
        await self._wait_for_clients(start + seconds, 0.0)

    def _stop_accepting(self) -> list[asyncio.Task[Any]]:
        """Close the listening sockets, and accept the last connections.

        The system would reset those that wait to be accepted, with the requests of their clients.

        Returns:
            Tasks that end when the connections are ready.
        """
        loop, config, tasks = asyncio.get_running_loop(), self.config, []

        def create_protocol() -> Any:
            states = {"server_state": self.server_state, "app_state": self.lifespan.state}
            return config.http_protocol_class(config=config, **states)  # type: ignore[call-arg]

        for server in self.servers:
            listeners = [listener.dup() for listener in server.sockets]
            server.close()
            for listener in listeners:
                with listener, contextlib.suppress(OSError):  # there are no more
                    while True:
                        connection, _ = listener.accept()
                        connection.setblocking(False)
                        ready = loop.connect_accepted_socket(
                            create_protocol, connection, ssl=config.ssl
                        )
                        tasks.append(loop.create_task(ready))
        return tasks

    async def _wait_for_clients(self, end: float, quiet_seconds: float) -> None:
        """Wait until no connection has been open for some time."""
        left_at = time.monotonic()
        while (now := time.monotonic()) < end:
            if self._connections:
                left_at = now
            elif now - left_at >= quiet_seconds:
                break
            await asyncio.sleep(_DRAIN_CHECK_SECONDS)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """Serves the models of a manager until it is stopped.

    Args:
        manager: the models.
        options: addresses and limits.
        routes: further HTTP routes, such as the web page.

    Attributes:
        grpc_port: the bound port after the start; None without gRPC.
        rest_port: the bound port after the start; None without REST.

    Raises:
        UserError: the file with the tokens cannot be used.
    """

    def __init__(
        self, manager: ModelManager, options: ServerOptions, routes: Sequence[BaseRoute] = ()
    ):
        self._manager, self._options, self._routes = manager, options, list(routes)
        tokens = None if options.token_file is None else BearerTokens(options.token_file)
        self._admission = Admission(options, tokens)
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._max_connections = min(options.max_connections, descriptors // 4)
        self.grpc_port: int | None = None
        self.rest_port: int | None = None
        self._grpc: Any = None
        self._health: HealthService | None = None
        self._gate = ResponseGate()
        self._calls = Calls(self._admission.max_total_bytes)
        self._rest: _Uvicorn | None = None
        self._rest_task: asyncio.Task[None] | None = None
        self._certificates: Certificates | None = None
        self._watches: list[FileWatch[Any]] = [] if tokens is None else [tokens.watch]

    async def start(self) -> None:
        """Bind the ports, load the models, then accept requests.

        Raises:
            OSError: a port cannot be bound.
            UserError: a TLS file cannot be used.
        """
        options, rest_socket = self._options, None
        if tls_files := TlsFiles.from_options(options):
            self._certificates = Certificates(tls_files)
            self._watches.append(self._certificates.watch)
        if options.grpc_port is not None:
            self._bind_grpc(options.grpc_port)
        if options.rest_port is not None:
            rest_socket = _bind(options.host, options.rest_port)
            self.rest_port = rest_socket.getsockname()[1]
        await self._manager.start()
        if self._grpc is not None and self._health is not None:
            await self._grpc.start()
            self._health.start()
        if rest_socket is not None:
            await self._start_rest(rest_socket)
        for watch in self._watches:
            watch.start()

    async def stop(self, grace: float = 30.0) -> None:
        """Reject new requests, and wait up to ``grace`` seconds for those in progress."""
        stops: list[Any] = []
        for watch in self._watches:
            watch.close()
        if self._grpc is not None and self._health is not None:
            self._health.close()
            stops.append(self._stop_grpc(grace))
        if self._rest is not None and self._rest_task is not None:
            stops.append(self._stop_rest(self._rest, self._rest_task, grace))
        await asyncio.gather(*stops)
        await self._manager.close()
        self._calls.close()
        self._admission.close()

    async def _stop_grpc(self, grace: float) -> None:
        await self._gate.close()
        stopping = asyncio.ensure_future(self._grpc.stop(grace))
        await asyncio.sleep(0)  # so that it begins before the responses pass
        self._gate.open()
        await stopping

    async def _stop_rest(self, rest: _Uvicorn, task: asyncio.Task[None], grace: float) -> None:
        end = time.monotonic() + grace
        await rest.drain(min(_DRAIN_SECONDS, grace))
        rest.should_exit = True
        await asyncio.wait([task], timeout=max(end - time.monotonic(), 0))

    def _bind_grpc(self, port: int) -> None:
        options = self._options
        self._grpc = grpc.aio.server(
            # Without `maximum_concurrent_rpcs`, which counts calls until clients read the response.
            options=[
                ("grpc.max_receive_message_length", options.max_request_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_concurrent_streams", _MAX_STREAMS),
                ("grpc.max_allowed_incoming_connections", 2 * self._max_connections),
                ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
                ("grpc.max_connection_idle_ms", _IDLE_MS),
                # Otherwise a second server could bind the same port and take half of the requests.
                ("grpc.so_reuseport", 0),
            ],
        )
        receiver = Receiver(self._admission)
        self._health = HealthService(
            ("", *SERVICES), receiver, self._calls, lambda: self._manager.is_ready
        )
        handlers = create_handlers(self._manager, receiver, self._gate, self._calls)
        self._grpc.add_generic_rpc_handlers(
            (*handlers, self._health.create_handler(), UnknownMethods(self._calls))
        )
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"{host}:{port}"
        try:
            if self._certificates is None:
                self.grpc_port = self._grpc.add_insecure_port(address)
            else:
                credentials = self._certificates.grpc_credentials
                self.grpc_port = self._grpc.add_secure_port(address, credentials)
        except RuntimeError:
            raise OSError(f"Cannot bind {address}; it may be in use.") from None
        self._calls.port = self.grpc_port

    async def _start_rest(self, rest_socket: socket.socket) -> None:
        options = self._options
        limit = options.max_request_bytes
        connections = Connections(
            self._max_connections, options.header_seconds, self._admission.max_total_bytes
        )
        api = RestApi(
            self._manager,
            self._admission,
            options.rest_timeout,
            limit,
            lambda: connections.is_draining,
        )
        access = Middleware(AccessMiddleware, self._admission)
        config = uvicorn.Config(
            Starlette(debug=False, routes=[*self._routes, *api.routes()], middleware=[access]),
            lifespan="off",
            http=connections.protocol_class(),  # type: ignore[arg-type]
            ws="none",
            h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
            backlog=_ACCEPTED_AT_ONCE,
            log_level="error",  # clients cause the warnings
            access_log=False,
            server_header=False,
        )
        if self._certificates is not None:
            config.load()  # uvicorn would call it later, and set `ssl` to None
            config.ssl = self._certificates.rest_context
        self._rest = _Uvicorn(config, connections)
        self._rest_task = asyncio.get_running_loop().create_task(self._rest.serve([rest_socket]))
        while not self._rest.started:
            if self._rest_task.done():
                await self._rest_task
                raise OSError("The REST server did not start.")
            await asyncio.sleep(0.01)
        rest_socket.listen(_WAITING_CONNECTIONS)


def _bind(host: str, port: int) -> socket.socket:
    """Bind a socket; uvicorn itself would end the process if the port is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the name of the protocol, asyncio does not set TCP_NODELAY, and each response after
    # the first of a connection waits up to 40 ms for the client's acknowledgement.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise OSError(f"Cannot bind {host}:{port}: {error.strerror}.") from None
    return bound
