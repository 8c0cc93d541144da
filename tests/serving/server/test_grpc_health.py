"""gRPC's health service: its answers, and limits that keep it from taking places of others."""

import asyncio
import contextlib
from types import SimpleNamespace

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from regard.serving.server import grpc_api, grpc_calls, grpc_health
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions
from tests.processes import wait_for
from tests.serving.server.requests import predict_request

SERVING = health_pb2.HealthCheckResponse.SERVING


@pytest.fixture
def channels():
    """Open channels with connections of their own."""
    with contextlib.ExitStack() as stack:

        def connect(server):
            options = [("grpc.use_local_subchannel_pool", 1)]
            address = f"127.0.0.1:{server.server.grpc_port}"
            return stack.enter_context(grpc.insecure_channel(address, options))

        yield connect


def start(run, saved):
    return run([ModelConfig("r", saved / "reverser")], ManagerOptions(poll_seconds=0))


def test_check(server):
    stub = health_pb2_grpc.HealthStub(server.channel)
    for service in ("", "tensorflow.serving.PredictionService"):
        assert stub.Check(health_pb2.HealthCheckRequest(service=service)).status == SERVING
    with pytest.raises(grpc.RpcError) as caught:
        stub.Check(health_pb2.HealthCheckRequest(service="nothing"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    for method in ("Check", "Watch"):
        call = server.channel.unary_stream(f"/grpc.health.v1.Health/{method}")
        with pytest.raises(grpc.RpcError) as caught:
            list(call(b"\xff\xff"))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_watches_report_the_end_of_the_server_and_do_not_delay_it(run, saved, channels):
    server = start(run, saved)
    stub = health_pb2_grpc.HealthStub(channels(server))
    first, second, unknown = (
        stub.Watch(health_pb2.HealthCheckRequest(service=service))
        for service in ("", "", "nothing")
    )
    assert next(first).status == next(second).status == SERVING
    assert next(unknown).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    second.cancel()
    server.do(server.server.stop(30))
    assert [response.status for response in first] == [health_pb2.HealthCheckResponse.NOT_SERVING]
    assert list(unknown) == []


def test_a_status_changed_while_another_is_sent_follows():
    service = grpc_health.HealthService([""], receiver=None, calls=SimpleNamespace(disconnect=None))
    service.start()

    class ClosingContext:
        """A connection during whose first response the server closes."""

        def __init__(self):
            self.sent = []

        def peer(self):
            return "client"

        async def write(self, response):
            self.sent.append(health_pb2.HealthCheckResponse.FromString(response).status)
            service.close()

    context = ClosingContext()
    asyncio.run(service._send_changes("", context))
    assert context.sent == [SERVING, health_pb2.HealthCheckResponse.NOT_SERVING]


def test_watches_do_not_take_the_places_of_other_calls(run, saved, channels, monkeypatch):
    monkeypatch.setattr(grpc_calls, "_MAX_CALLS", 4)
    monkeypatch.setattr(grpc_health, "MAX_WATCHES", 6)
    server = start(run, saved)
    stub = health_pb2_grpc.HealthStub(channels(server))
    watches = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(6)]
    assert {next(watch).status for watch in watches} == {SERVING}
    with pytest.raises(grpc.RpcError) as caught:
        next(stub.Watch(health_pb2.HealthCheckRequest()))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    for _ in range(5):
        assert stub.Check(health_pb2.HealthCheckRequest()).status == SERVING
        assert server.predictions.Predict(predict_request("r", source=["ab"])).outputs
    watches[0].cancel()
    wait_for(lambda: watch_once(stub) == SERVING)


def watch_once(stub):
    with contextlib.suppress(grpc.RpcError):
        watch = stub.Watch(health_pb2.HealthCheckRequest())
        status = next(watch).status
        watch.cancel()
        return status


def test_a_watch_ends(run, saved, channels, monkeypatch):
    monkeypatch.setattr(grpc_health, "_WATCH_SECONDS", 0.2)
    stub = health_pb2_grpc.HealthStub(channels(start(run, saved)))
    assert [response.status for response in stub.Watch(health_pb2.HealthCheckRequest())] == [
        SERVING
    ]


@pytest.mark.parametrize("method", ["Check", "Watch"])
def test_calls_without_a_message_end(run, saved, channels, monkeypatch, method):
    monkeypatch.setattr(grpc_api, "_SLOW_SECONDS", 0.05)
    monkeypatch.setattr(grpc_api, "_MAX_OTHER_SLOW", 0)
    server = start(run, saved)
    call = channels(server).stream_stream(f"/grpc.health.v1.Health/{method}")
    silent = call(silence())
    with pytest.raises(grpc.RpcError) as caught:
        next(silent)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def silence():
    """Yield no message, and do not end."""
    wait_for(lambda: False, seconds=20)
    yield b""


def test_the_oldest_call_without_a_message_gives_way(run, saved, channels, monkeypatch):
    monkeypatch.setattr(grpc_api, "_SLOW_SECONDS", 600)
    monkeypatch.setattr(grpc_api, "_MAX_ARRIVALS", 3)
    server = start(run, saved)
    call = channels(server).stream_unary("/tensorflow.serving.PredictionService/Predict")
    silent = [call.future(silence()) for _ in range(6)]
    wait_for(lambda: sum(call.done() for call in silent) >= 3)
    for _ in range(5):
        assert server.predictions.Predict(predict_request("r", source=["ab"])).outputs
    assert {call.code() for call in silent if call.done()} == {grpc.StatusCode.UNAVAILABLE}
    for call in silent:
        call.cancel()
