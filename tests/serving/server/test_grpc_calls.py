"""Clients of gRPC that do not read responses, and those that call unknown methods."""

import contextlib
import socket

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from regard.serving.server import grpc_calls, grpc_health
from regard.serving.server import server as server_module
from regard.serving.server.client_sockets import Address, disconnect, parse_peer
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions
from tests.processes import wait_for
from tests.serving.server.http2 import UnreadingClient
from tests.serving.server.requests import predict_request

CHECK, WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"


@pytest.fixture(autouse=True)
def idle_connections_stay(monkeypatch):
    """Otherwise gRPC may close the connections of these clients first."""
    monkeypatch.setattr(server_module, "_IDLE_MS", 600_000)


def start(run, saved, **options):
    return run([ModelConfig("r", saved / "reverser")], ManagerOptions(poll_seconds=0), **options)


def unread(server):
    """The number of unread responses, and of their bytes."""
    calls = server.server._calls
    return len(calls._unread), calls._unread_bytes


def is_served(server):
    """Whether calls of another client succeed."""
    health = health_pb2_grpc.HealthStub(server.channel)
    status = health.Check(health_pb2.HealthCheckRequest()).status
    outputs = server.predictions.Predict(predict_request("r", source=["ab"])).outputs
    return status == health_pb2.HealthCheckResponse.SERVING and bool(outputs)


def test_unread_responses_take_no_places_of_other_calls(run, saved, monkeypatch):
    monkeypatch.setattr(grpc_calls, "_MAX_CALLS", 4)
    server = start(run, saved)
    with UnreadingClient(server.server.grpc_port) as client:
        for number in range(1, 9):  # one at a time, as four calls may run at once
            client.call(CHECK)
            wait_for(lambda number=number: unread(server)[0] == number)
        assert all(is_served(server) for _ in range(5))


def test_too_many_unread_responses_end_with_the_oldest_connection(run, saved, monkeypatch):
    monkeypatch.setattr(grpc_calls, "_MAX_UNREAD", 30)
    server = start(run, saved)
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(UnreadingClient(server.server.grpc_port)) for _ in range(2)
        )
        first.call(CHECK, 20)
        wait_for(lambda: unread(server)[0] == 20)
        second.call(CHECK, 20)
        first.wait_until_closed()
        wait_for(lambda: unread(server)[0] == 20)
        assert is_served(server)


def test_too_many_unread_bytes_end_a_connection(run, saved, monkeypatch):
    server = start(run, saved, max_request_bytes=10)
    assert server.server._admission.max_total_bytes == 160
    with UnreadingClient(server.server.grpc_port) as client:
        client.call(CHECK, 100)  # of 2 bytes each
        client.wait_until_closed()
    wait_for(lambda: unread(server) == (0, 0))


def test_responses_that_are_read_are_not_counted(run, saved):
    server = start(run, saved)
    assert all(is_served(server) for _ in range(5))
    wait_for(lambda: unread(server) == (0, 0))


def test_the_connection_of_a_watch_ends_whose_client_does_not_read(run, saved, monkeypatch):
    monkeypatch.setattr(grpc_health, "MAX_WATCHES", 1)
    monkeypatch.setattr(grpc_health, "_SEND_SECONDS", 0.1)
    server = start(run, saved)
    with UnreadingClient(server.server.grpc_port) as client:
        client.call(WATCH)
        client.wait_until_closed()
    wait_for(lambda: server.server._health._watches == 0)
    watch = health_pb2_grpc.HealthStub(server.channel).Watch(health_pb2.HealthCheckRequest())
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    watch.cancel()


def test_only_so_many_calls_run_at_once(run, saved, monkeypatch):
    monkeypatch.setattr(grpc_calls, "_MAX_CALLS", 0)
    server = start(run, saved)
    with pytest.raises(grpc.RpcError) as predict:
        server.predictions.Predict(predict_request("r", source=["ab"]))
    with pytest.raises(grpc.RpcError) as check:
        health_pb2_grpc.HealthStub(server.channel).Check(health_pb2.HealthCheckRequest())
    for caught in (predict, check):
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert caught.value.details() == "0 calls are in progress. Try again later."


def test_errors_of_unknown_methods_are_counted(run, saved, monkeypatch):
    counted = []
    monkeypatch.setattr(
        grpc_calls.Calls, "count_response", lambda _, __, size: counted.append(size)
    )
    server = start(run, saved)
    for path in ("/unknown/Method", "/tensorflow.serving.PredictionService/Classify"):
        with pytest.raises(grpc.RpcError) as caught:
            server.channel.unary_unary(path)(b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert len(counted) == 2


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:127.0.0.1:50000", Address("127.0.0.1", 50000)),
        ("ipv6:%5B::1%5D:50000", Address("::1", 50000)),
        ("ipv6:[fe80::1%25eth0]:50000", Address("fe80::1", 50000)),
        ("ipv6:%5B::ffff:10.0.0.1%5D:50000", Address("10.0.0.1", 50000)),
    ],
)
def test_addresses_of_peers(peer, address):
    assert parse_peer(peer) == address


def test_disconnecting_leaves_other_connections_open():
    with contextlib.ExitStack() as stack:
        pairs = []
        for _ in range(2):
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            for _ in range(2):
                client = stack.enter_context(socket.create_connection(listener.getsockname()))
                pairs.append((client, stack.enter_context(listener.accept()[0])))
        ended = pairs[0][0]
        disconnect({Address(*ended.getsockname())}, pairs[2][1].getsockname()[1])
        for client, connection in pairs:
            connection.sendall(b"a")  # of another port: all are open
            assert client.recv(1) == b"a"
        disconnect({Address(*ended.getsockname())}, pairs[0][1].getsockname()[1])
        assert ended.recv(1) == b""
        for client, connection in pairs[1:]:
            connection.sendall(b"a")
            assert client.recv(1) == b"a"
