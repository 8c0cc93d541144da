"""HTTP/1.1 requests, parsed in small turns, and strictly where proxies could disagree."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import h11

_MAX_HEAD_LINES = 128
# A small chunk costs as much time as a large one.
_FREE_CHUNKS, _MIN_CHUNK_BYTES = 1024, 256
_MAX_FRAMING_BYTES = 1024  # the extension of a chunk, or all trailers
# h11 limits what is incomplete, and parses what is complete, at once and whatever its size.
_SLICE_BYTES = 4096
_TOO_LONG, _TOO_LONG_STATUS = "The headers are too long or too many.", 431
# RFC 9112 lets a server accept these, and a proxy before it read another request.
_AMBIGUOUS_LINES = re.compile(rb"(?<!\r)\n|\n[ \t]")


class RequestParser(h11.Connection):
    """Parses the requests of one connection, and writes the responses.

    Ambiguous requests and those of too many headers or small chunks are errors. A response before
    the end of its request closes the connection.

    Args:
        max_head_bytes: limit for the request line and headers.

    Attributes:
        must_close: whether the next response closes the connection.
        is_interrupted: whether the turn ended before the received bytes.
        is_paused: whether the next request has to wait for a response.
    """

    def __init__(self, max_head_bytes: int):
        super().__init__(h11.SERVER, max_head_bytes)
        self._max_head_bytes = max_head_bytes
        self._received = bytearray()
        self._steps = self._chunks = self._body_bytes = 0
        self._is_chunked = False
        self._problem: h11.RemoteProtocolError | None = None
        self.must_close = self.is_interrupted = self.is_paused = False

    @property
    def problem(self) -> str | None:
        """What is wrong with the request, in a sentence for its client."""
        return str(self._problem) if self._problem else None

    @property
    def problem_status(self) -> int:
        """The HTTP status of an invalid request."""
        return self._problem.error_status_hint if self._problem else 400

    @property
    def is_unfinished(self) -> bool:
        """Whether the client may still send bytes of a request that nobody will read."""
        return self._problem is not None or self.their_state in (h11.SEND_BODY, h11.ERROR)

    def start_turn(self, steps: int) -> None:
        """Allow a number of steps: events, and slices of the received bytes."""
        self._steps, self.is_interrupted = steps, False

    def receive_data(self, data: bytes) -> None:
        """Add received bytes, which ``next_event`` parses in slices."""
        self._received += data

    def next_event(self) -> Any:
        """Return the next event, or NEED_DATA at the end of the turn.

        Raises:
            RemoteProtocolError: the request is invalid.
        """
        if self._problem is not None:
            raise self._problem
        while self._steps > 0:
            if self.their_state is h11.IDLE:
                self._check_head()
            event = self._parse_event()
            if event is h11.NEED_DATA and self._received:
                self._feed()
            elif event is h11.NEED_DATA or event is h11.PAUSED:
                self.is_paused = event is h11.PAUSED
                return event
            else:
                self._steps -= 1
                self._check_event(event)
                return event
        self.is_interrupted = True
        return h11.NEED_DATA

    def _parse_event(self) -> Any:
        """Return h11's next event; an error keeps its status, which uvicorn does not pass on."""
        try:
            return super().next_event()
        except h11.RemoteProtocolError as error:
            is_too_long = error.error_status_hint == _TOO_LONG_STATUS
            reason = _TOO_LONG if is_too_long else "The request is not valid HTTP."
            self._reject(reason, error.error_status_hint)

    def send(self, event: Any) -> Any:
        """Convert an event to bytes; an early response says that the connection closes."""
        if type(event) is h11.Response and (self.must_close or self.is_unfinished):
            headers = [*event.headers, (b"connection", b"close")]
            event = h11.Response(
                status_code=event.status_code, headers=headers, reason=event.reason
            )
        return super().send(event)

    def _feed(self) -> None:
        """Pass a slice to h11; of a body with a declared length all, which is one event."""
        is_framed = self._is_chunked or self.their_state is not h11.SEND_BODY
        if self.their_state is h11.SEND_BODY and self._is_chunked:
            unread, _ = self.trailing_data
            if len(unread) > _MAX_FRAMING_BYTES:
                self._reject("The extension of a chunk, or the trailers, are too long.")
        size = _SLICE_BYTES if is_framed else len(self._received)
        super().receive_data(bytes(self._received[:size]))
        del self._received[:size]
        self._steps -= 1

    def _check_head(self) -> None:
        """Check the bytes of the request line and headers before they are parsed."""
        unread, _ = self.trailing_data
        ends = [end for end in (unread.find(b"\n\r\n"), unread.find(b"\n\n")) if end >= 0]
        if not ends:
            return
        head = unread[: min(ends)]
        if len(head) > self._max_head_bytes or head.count(b"\n") > _MAX_HEAD_LINES:
            self._reject(_TOO_LONG, _TOO_LONG_STATUS)
        if _AMBIGUOUS_LINES.search(unread, 0, min(ends) + 2):
            self._reject("A line of the headers does not end with CR LF, or begins with a space.")

    def _check_event(self, event: h11.Event) -> None:
        if isinstance(event, h11.Request):
            self._chunks = self._body_bytes = 0
            names = {name for name, _ in event.headers}
            self._is_chunked = b"transfer-encoding" in names
            if self._is_chunked and b"content-length" in names:
                self._reject("The request has both Content-Length and Transfer-Encoding.")
            if self._is_chunked and event.http_version < b"1.1":
                self._reject("HTTP/1.0 has no Transfer-Encoding.")
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._body_bytes += len(event.data)
            if self._chunks > _FREE_CHUNKS + self._body_bytes // _MIN_CHUNK_BYTES:
                self._reject("The body consists of too many small chunks.")

    def _reject(self, reason: str, status: int = 400) -> NoReturn:
        self._received.clear()
        self._problem = h11.RemoteProtocolError(reason, error_status_hint=status)
        raise self._problem
