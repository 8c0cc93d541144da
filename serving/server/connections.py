"""HTTP connections with limits on their number, their time, their unsent bytes and their turns."""

from __future__ import annotations

import asyncio
import collections
import functools
import time
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.serving.server.http_parser import RequestParser
from regard.serving.server.rest_json import dump

# Of a connection at once, and then in each iteration of the event loop, of one connection.
_FIRST_STEPS, _TURN_STEPS = 16, 32
# How long the rest of a request is read that is already answered. Otherwise the system resets the
# connection, and the client may lose the response.
_DISCARD_SECONDS = 5.0


class Connections:
    """The open connections of a server.

    A connection that waits for a request, for the rest of one, or for its client to read the
    response, gives way to a new one when there are too many, the oldest first. So a client that
    opens many connections without using them cannot keep others out. Connections with much to parse
    take turns, so that all of them together cost an iteration of the event loop about 0.5 ms.

    Args:
        limit: the maximum number of connections.
        header_seconds: how long a client may take for the headers of a request, and may pause
            while it reads a response.
        max_unsent_bytes: the limit for all responses together; beyond it the largest one ends.

    Attributes:
        is_draining: whether each connection closes after its next response.
    """

    def __init__(self, limit: int, header_seconds: float, max_unsent_bytes: int):
        self._limit, self._header_seconds = limit, header_seconds
        self._max_unsent_bytes = max_unsent_bytes
        self._open: set[Connection] = set()
        self._turns: collections.deque[Connection] = collections.deque()
        self.is_draining = False
        self._waiting: dict[Connection, float] = {}  # since when, the oldest first

    def __len__(self) -> int:
        """Return the number of open connections."""
        return len(self._open)

    def protocol_class(self) -> Callable[..., Connection]:
        """Return what creates the connections, for uvicorn."""
        return functools.partial(Connection, self)

    def add(self, connection: Connection) -> None:
        """Add a new connection, and close another if there are too many."""
        self._open.add(connection)
        connection.parser.must_close = self.is_draining
        self.update(connection)
        if len(self._open) > self._limit:
            self._abort(next(iter(self._waiting)))

    def update(self, connection: Connection) -> None:
        """Note whether a connection waits for its client."""
        if connection not in self._open or not connection.is_waiting:
            self._waiting.pop(connection, None)
        else:
            self._waiting.setdefault(connection, time.monotonic())

    def note_progress(self, connection: Connection) -> None:
        """Note that the client of a waiting connection has read something."""
        if self._waiting.pop(connection, None) is not None:
            self._waiting[connection] = time.monotonic()  # as the youngest

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def drain(self) -> None:
        """Close each connection after its next response, which says so."""
        self.is_draining = True
        for connection in self._open:
            connection.parser.must_close = True

    def wait_for_turn(self, connection: Connection) -> None:
        """Let a connection parse more in a later iteration of the event loop."""
        if not self._turns:
            asyncio.get_running_loop().call_soon(self._take_turn)
        self._turns.append(connection)

    def _take_turn(self) -> None:
        connection = self._turns.popleft()
        if self._turns:
            asyncio.get_running_loop().call_soon(self._take_turn)
        if connection in self._open:
            connection.take_turn()

    def sweep(self) -> None:
        """Close the connections whose time is over, and those with too many unsent bytes."""
        for connection in list(self._open):
            self.update(connection)
        now, unsent = time.monotonic(), {}
        for connection in list(self._waiting):
            size = connection.transport.get_write_buffer_size()
            if size < connection.unsent:
                self.note_progress(connection)
            connection.unsent = unsent[connection] = size
            since = self._waiting[connection]
            if now - since > self._header_seconds and not connection.is_receiving_body:
                self._abort(connection)
        total = sum(unsent.values())
        for connection in sorted(unsent, key=unsent.__getitem__, reverse=True):
            if total <= self._max_unsent_bytes:
                break
            total -= unsent[connection]
            self._abort(connection)

    def _abort(self, connection: Connection) -> None:
        self.remove(connection)
        connection.transport.abort()


class Connection(H11Protocol):
    """One HTTP connection.

    Args:
        connections: all connections of the server.
        args: the arguments of uvicorn's class.
        options: the keyword arguments of uvicorn's class.

    Attributes:
        parser: parses the requests.
        unsent: bytes of responses that the client had not read at the last look.
    """

    def __init__(self, connections: Connections, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self._all, self.unsent = connections, 0
        self.parser = RequestParser(self.config.h11_max_incomplete_event_size or 0)
        self.conn = self.parser

    @property
    def is_receiving_body(self) -> bool:
        """Whether the headers of a request are complete, but not its body."""
        return self.cycle is not None and not self.cycle.response_complete and self.cycle.more_body

    @property
    def is_waiting(self) -> bool:
        """Whether the server has nothing to do until the client sends or reads something."""
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.response_complete:
            return True
        # Of a response whose client has read everything, the rest is being computed.
        return cycle.response_started and self.transport.get_write_buffer_size() > 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._discarding = _DiscardingTransport(transport, self.parser, self.loop)
        wrapped: Any = self._discarding
        super().connection_made(wrapped)
        self.flow = self._turn = _TurnFlowControl(wrapped)
        self._all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._discarding.is_discarding:
            super().data_received(data)

    def handle_events(self) -> None:
        if not self._turn.is_waiting:
            self._handle_events(_FIRST_STEPS)

    def take_turn(self) -> None:
        """Parse what earlier turns have left over."""
        self._turn.is_waiting = False
        self._handle_events(_TURN_STEPS)
        # Otherwise the application resumes, when it has read the body or has sent its response.
        has_read_all = self.cycle is None or len(self.cycle.body) <= HIGH_WATER_LIMIT
        if has_read_all and not self.parser.is_paused:
            self.flow.resume_reading()

    def _handle_events(self, steps: int) -> None:
        if self._discarding.is_discarding or self.transport.is_closing():
            return
        self.parser.start_turn(steps)
        super().handle_events()
        if self.parser.is_interrupted:
            self.flow.pause_reading()
            self._turn.is_waiting = True
            self._all.wait_for_turn(self)
        self._all.update(self)

    def send_400_response(self, msg: str) -> None:
        """Send why the request is invalid, unless its response has begun."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # so it sends no other response
            self.cycle.message_event.set()
        body = dump({"error": self.parser.problem or msg})
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        headers.append((b"content-length", str(len(body)).encode()))
        events = (
            h11.Response(status_code=self.parser.problem_status, headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        for event in events:
            self.transport.write(self.conn.send(event))
        self.transport.close()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._all.note_progress(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._all.update(self)


class _TurnFlowControl(FlowControl):
    """Keeps reading paused while a connection waits for its turn.

    Attributes:
        is_waiting: whether it waits.
    """

    is_waiting = False

    def resume_reading(self) -> None:
        if not self.is_waiting:
            super().resume_reading()


class _DiscardingTransport:
    """A transport that reads the rest of an unfinished request before it closes.

    Args:
        transport: the connection.
        parser: the parser of its requests.
        loop: the event loop.

    Attributes:
        is_discarding: whether it closes, and what it receives is of no use.
    """

    def __init__(
        self, transport: asyncio.Transport, parser: RequestParser, loop: asyncio.AbstractEventLoop
    ):
        self._transport, self._parser, self._loop = transport, parser, loop
        self.is_discarding = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self.is_discarding or self._transport.is_closing()

    def close(self) -> None:
        if self.is_closing() or not self._parser.is_unfinished:
            self._transport.close()
            return
        self.is_discarding = True
        self._transport.resume_reading()
        self._loop.call_later(_DISCARD_SECONDS, self._transport.close)
