"""Clients that open connections and do not use them."""

import contextlib
import select
import socket
import time

import pytest

from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions
from tests.processes import wait_for
from tests.serving.server.requests import post

ROWS = {"instances": ["ab"]}
HEAD = b"POST /v1/models/r:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
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


def test_large_headers_are_rejected(run, saved, sockets):
    server = start(run, saved)
    opened = sockets(server, b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000)
    assert b"400" in opened.recv(100)
