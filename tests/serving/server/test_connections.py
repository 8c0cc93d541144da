"""Clients that open connections and do not use them, or send what costs much time."""

import asyncio
import contextlib
import select
import socket
import time

import pytest

from regard.serving.server import connections
from regard.serving.server import server as server_module
from regard.serving.server.connections import Connection, Connections
from regard.serving.server.http_parser import RequestParser
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions
from tests.processes import wait_for
from tests.serving.server.requests import post

ROWS = {"instances": ["ab"]}
HEAD = b"POST /v1/models/r:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
CHUNKED = HEAD.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked")
HALF_A_BODY = HEAD % 99 + b"{"


@pytest.fixture
def sockets():
    with contextlib.ExitStack() as stack:

        def connect(server, content):
            opened = socket.create_connection(("127.0.0.1", server.server.rest_port), timeout=30)
            stack.enter_context(opened)
            opened.sendall(content)
            return opened

        yield connect


def start(run, saved, **options):
    return run([ModelConfig("r", saved / "reverser")], ManagerOptions(poll_seconds=0), **options)


def is_closed(opened):
    if not select.select([opened], [], [], 0)[0]:
        return False
    try:
        return opened.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("content", [b"", b"GET / HTTP/1.1\r\nX: ", HALF_A_BODY])
def test_the_oldest_waiting_connection_gives_way(run, saved, sockets, content):
    server = start(run, saved, max_connections=5, header_seconds=600)
    opened = [sockets(server, content) for _ in range(20)]
    for _ in range(3):
        assert post(server, "r:predict", ROWS).status_code == 200
    wait_for(lambda: sum(map(is_closed, opened)) >= 15)
    assert is_closed(opened[0])
    assert not is_closed(opened[-1])


def test_slow_headers_end_and_other_connections_stay(run, saved, sockets):
    server = start(run, saved, header_seconds=0.5)
    slow = sockets(server, b"GET /v1/models/r HTTP/1.1\r\nX: ")
    body = sockets(server, HALF_A_BODY)
    wait_for(lambda: is_closed(slow))
    assert post(server, "r:predict", ROWS).status_code == 200
    assert not is_closed(body)  # the time limit of the request ends it


def test_a_client_that_does_not_read_its_response_is_closed(run, saved, sockets):
    server = start(run, saved, header_seconds=0.5)
    rows = b",".join([b'"%s"' % (b"ab" * 50)] * 200)
    body = b'{"signature_name": "align", "instances": [%s]}' % rows
    opened = sockets(server, HEAD % len(body) + body)
    assert opened.recv(12) == b"HTTP/1.1 200"
    time.sleep(3)  # longer than the limit and the interval between two looks
    received = 0
    with contextlib.suppress(ConnectionError):
        while content := opened.recv(1 << 20):
            received += len(content)
    answer = post(server, "r:predict", body)
    assert answer.status_code == 200
    assert received < len(answer.content)


def test_a_client_that_has_read_something_is_no_longer_the_oldest():
    class Waiting:
        is_waiting, parser = True, RequestParser(100)

    waiting = Connections(limit=10, header_seconds=1.0, max_unsent_bytes=1)
    first, second = Waiting(), Waiting()
    for connection in (first, second):
        waiting.add(connection)
    waiting.note_progress(first)
    assert list(waiting._waiting) == [second, first]


def test_large_headers_are_rejected(run, saved, sockets):
    server = start(run, saved)
    opened = sockets(server, b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000)
    assert b"431" in opened.recv(100)


def read_response(opened):
    content = b""
    while received := opened.recv(1 << 16):
        content += received
    return content


def test_connections_send_without_delay(run, saved):
    server = start(run, saved)
    no_delay = []
    original = Connection.connection_made

    def record(self, transport):
        accepted = transport.get_extra_info("socket")
        no_delay.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        original(self, transport)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "connection_made", record)
        assert server.rest.get("/v1/models/r").status_code == 200
    assert no_delay == [1]


@pytest.mark.parametrize(("path", "status"), [(b"/v2", b"404"), (b"/v1/x", b"400")])
def test_an_early_response_closes_the_connection_and_is_not_lost(run, saved, sockets, path, status):
    """The client sends more than fits into the buffers of the system before it reads."""
    server = start(run, saved)
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12000000\r\n\r\n" % path
    opened = sockets(server, head)
    for _ in range(6):
        opened.sendall(b"x" * 1_000_000)
    response = read_response(opened)
    assert response.startswith(b"HTTP/1.1 " + status)
    assert b"connection: close" in response.lower()


def test_a_complete_request_keeps_its_connection(run, saved, sockets):
    server = start(run, saved)
    request = HEAD.replace(b"/v1/models/r:predict", b"/v2") % 3 + b"abc"
    opened = sockets(server, request)
    for _ in range(3):
        assert b"connection: close" not in opened.recv(1 << 16).lower()
        opened.sendall(request)


def test_tiny_chunks_end_with_an_error(run, saved, sockets):
    server = start(run, saved)
    opened = sockets(server, CHUNKED + b"1\r\n1\r\n" * 30_000)
    response = read_response(opened)
    assert response.startswith(b"HTTP/1.1 400")
    assert b"small chunks" in response
    assert response.count(b"HTTP/1.1") == 1


def test_a_connection_with_much_to_parse_takes_turns(run, saved, sockets, monkeypatch):
    """Two connections send 900 small chunks each; the server alternates between them."""
    turns = []
    original = Connection.take_turn

    def record(self):
        turns.append(self)
        original(self)

    monkeypatch.setattr(Connection, "take_turn", record)
    server = start(run, saved)
    rows = b'{"instances": ["ab"]}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in b" " * 880 + rows) + b"0\r\n\r\n"
    opened = [sockets(server, CHUNKED + chunks) for _ in range(2)]
    for connection in opened:
        assert connection.recv(12) == b"HTTP/1.1 200"
    assert len(turns) >= 2 * 900 // connections._TURN_STEPS
    assert len(set(turns)) == 2


@pytest.mark.parametrize("size", [100, 5_000, 3_000_000])
@pytest.mark.parametrize("chunk_bytes", [400, 70_000])
def test_chunked_bodies_arrive_whole(run, saved, size, chunk_bytes):
    server = start(run, saved)
    body = b'{"instances": ["ab"]}' + b" " * size
    parts = (body[i : i + chunk_bytes] for i in range(0, len(body), chunk_bytes))
    answer = server.rest.post("/v1/models/r:predict", content=parts)
    assert answer.json()["predictions"][0]["translation"] == "BA"


def test_a_draining_server_announces_the_end_of_each_connection(run, saved, sockets, monkeypatch):
    monkeypatch.setattr(server_module, "_DRAIN_SECONDS", 600.0)
    server = start(run, saved)
    opened = [sockets(server, b"") for _ in range(4)]
    for connection in opened:
        send_request(connection)
        assert b"connection: close" not in read_message(connection)
    stopping = asyncio.run_coroutine_threadsafe(server.server.stop(600), server.loop)
    wait_for(lambda: server.rest.get("/v2/health/ready").status_code == 503)
    assert server.rest.get("/v2/health/ready").json() == {"error": "The server is stopping."}
    opened.append(sockets(server, b""))  # a client that connects again
    for connection in opened:
        send_request(connection)
        response = read_response(connection)
        assert response.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in response
    stopping.result(60)


def test_connections_that_wait_to_be_accepted_are_not_lost(run, saved, sockets, monkeypatch):
    monkeypatch.setattr(server_module, "_DRAIN_SECONDS", 600.0)
    server = start(run, saved)
    opened, stop_accepting = [], server_module._Uvicorn._stop_accepting

    def connect_and_stop(uvicorn):
        for _ in range(5):  # the event loop waits, so nothing accepts them
            opened.append(sockets(server, b""))
            send_request(opened[-1])
        return stop_accepting(uvicorn)

    monkeypatch.setattr(server_module._Uvicorn, "_stop_accepting", connect_and_stop)
    server.do(server.server.stop(600))
    for connection in opened:
        assert read_response(connection).startswith(b"HTTP/1.1 200")


def test_a_draining_server_closes_idle_connections(run, saved, sockets, monkeypatch):
    monkeypatch.setattr(server_module, "_DRAIN_SECONDS", 0.1)
    server = start(run, saved)
    idle = sockets(server, b"")
    send_request(idle)
    read_message(idle)
    server.do(server.server.stop(5))
    assert read_response(idle) == b""


def send_request(opened):
    opened.sendall(b"GET /v1/models/r HTTP/1.1\r\nHost: localhost\r\n\r\n")


def read_message(opened):
    """Read a response whose body ends with the status of a model."""
    content = b""
    while not content.endswith(b"]}"):
        content += opened.recv(1 << 16)
    return content
