"""HTTP connections with limits on their number, on the time of headers and on unsent bytes."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connections:
    """The open connections of a server.

    A connection that waits for a request, for the rest of one, or for its client to read the
    response, gives way to a new one when there are too many, the oldest first. So a client that
    opens many connections without using them cannot keep others out.

    Args:
        limit: the maximum number of connections.
        header_seconds: how long a client may take for the headers of a request, and may pause
            while it reads a response.
        max_unsent_bytes: of all responses together; more of them end with the largest.
    """

    def __init__(self, limit: int, header_seconds: float, max_unsent_bytes: int):
        self._limit, self._header_seconds = limit, header_seconds
        self._max_unsent_bytes = max_unsent_bytes
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, float] = {}  # since when, the oldest first

    def protocol_class(self) -> Callable[..., Connection]:
        """Return what creates the connections, for uvicorn."""
        return functools.partial(Connection, self)

    def add(self, connection: Connection) -> None:
        """Add a new connection, and close another if there are too many."""
        self._open.add(connection)
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
        if connection in self._waiting:
            self._waiting[connection] = time.monotonic()

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)

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
        args: of uvicorn's class.
        options: of uvicorn's class.

    Attributes:
        unsent: bytes of responses that the client had not read at the last look.
    """

    def __init__(self, connections: Connections, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self._all, self.unsent = connections, 0

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
        super().connection_made(transport)
        self._all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.remove(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        self._all.update(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._all.note_progress(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._all.update(self)
