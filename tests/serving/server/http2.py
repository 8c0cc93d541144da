"""A client of HTTP/2 that receives as much of the responses as a test wants."""

import socket

_HEADERS, _DATA, _SETTINGS, _WINDOW_UPDATE = 1, 0, 4, 8
_END_STREAM, _END_HEADERS = 1, 4
_INITIAL_WINDOW_SIZE = 4
_EMPTY_MESSAGE = bytes(5)  # of gRPC


def _frame(kind, flags, stream, content):
    head = len(content).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream.to_bytes(4, "big") + content


def _header(name, value):
    """Return a header of HPACK, without an index."""
    return b"".join([b"\0", bytes([len(name)]), name, bytes([len(value)]), value])


class UnreadingClient:
    """A connection whose client receives no bytes of the messages of the responses.

    Args:
        port: of the server.
    """

    def __init__(self, port):
        self._connection, self._streams = socket.create_connection(("127.0.0.1", port)), 0
        window = _INITIAL_WINDOW_SIZE.to_bytes(2, "big") + bytes(4)
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        self._connection.sendall(preface + _frame(_SETTINGS, 0, 0, window))
        # The server uses the settings of the client after it has acknowledged them.
        received = b""
        while _frame(_SETTINGS, 1, 0, b"") not in received:
            received += self._connection.recv(65536)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.close()

    def call(self, path, count=1):
        """Call a method with an empty message."""
        values = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost"}
        values |= {"te": "trailers", "content-type": "application/grpc"}
        headers = b"".join(_header(n.encode(), v.encode()) for n, v in values.items())
        frames = []
        for _ in range(count):
            stream = 2 * self._streams + 1
            self._streams += 1
            frames.append(_frame(_HEADERS, _END_HEADERS, stream, headers))
            frames.append(_frame(_DATA, _END_STREAM, stream, _EMPTY_MESSAGE))
        self._connection.sendall(b"".join(frames))

    def wait_until_closed(self):
        """Receive until the server closes the connection."""
        self._connection.settimeout(60)
        while self._connection.recv(65536):
            pass
