"""Token streams: over both protocols, their limits, and what ends them."""

import asyncio
import json
import shutil
import threading
import time

import grpc
import pytest
from tensorflow_serving.apis import predict_pb2

from regard.serving.client import AsyncClient, Client, ClientError
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions, RequestLogOptions
from regard.serving.server.servable import Servable
from regard.serving.streaming import STEP
from tests import fake_models
from tests.processes import wait_for
from tests.serving.server.requests import post, predict_request

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("streams")
    fake_models.save(fake_models.Streamer(), root / "streamer" / "1")
    fake_models.save(fake_models.Reverser(), root / "reverser" / "1")
    contract = fake_models.Reverser().contract()
    contract["stream_problem"] = "Its search (beam) compares outputs."
    fake_models.save(fake_models.Reverser(), root / "beam" / "1", contract=contract)
    return root


@pytest.fixture
def start(run, folder):
    """Start a server, by default of one model."""

    def start(options=None, names=("streamer",), **server_options):
        models = [ModelConfig(name, folder / name) for name in names]
        options = options or ManagerOptions(poll_seconds=0)
        return run(models, options, **server_options)

    return start


class Steps:
    """Makes the steps of streams wait for permits, and counts them."""

    def __init__(self, monkeypatch, seconds=0.0):
        self.count, self._permits, self.seconds = 0, threading.Semaphore(0), seconds
        run = Servable.run

        def wait_and_run(servable, name, inputs, timeout=0.0):
            if name == STEP and timeout:  # not while it warms up
                self.count += 1
                assert self.seconds or self._permits.acquire(timeout=30)
                time.sleep(self.seconds)
            return run(servable, name, inputs, timeout)

        monkeypatch.setattr(Servable, "run", wait_and_run)

    def allow(self, count):
        self._permits.release(count)


def client_of(server, model="streamer", scheme="http"):
    port = server.server.rest_port if scheme == "http" else server.server.grpc_port
    return Client(f"{scheme}://127.0.0.1:{port}", model, retries=0)


def is_idle(server):
    """Whether no stream holds anything."""
    versions = server.manager._models["streamer"].versions.values()
    return not any(version.requests for version in versions)


def test_both_protocols_send_each_token(start):
    server = start()
    response = post(server, "streamer:stream", {"instances": ["abc"]})
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in response.text.split("\n\n")[:-1]]
    token = {"log_probability": -0.5}
    whole = {"translation": "CBA", "score": -1.5}
    expected = [{**token, "text": letter, "token": letter} for letter in "CBA"]
    assert events == [*expected[:2], {**expected[2], **whole}]
    call = server.channel.stream_stream(
        "/regard.StreamService/PredictStream",
        predict_pb2.PredictRequest.SerializeToString,
        predict_pb2.PredictResponse.FromString,
    )
    messages = list(call(iter([predict_request("streamer", source=["abc"])])))
    assert [one.outputs["text"].string_val[0] for one in messages] == [b"C", b"B", b"A"]
    assert messages[2].outputs["translation"].string_val[0] == b"CBA"
    assert messages[2].model_spec.version.value == 1
    metrics = server.rest.get("/monitoring/prometheus/metrics").text
    assert 'streamed_token_count_total{model="streamer"} 6' in metrics
    assert 'API="stream",entrypoint="REST"' in metrics
    assert 'API="PredictStream",entrypoint="GRPC"' in metrics
    with pytest.raises(grpc.RpcError, match="not a valid PredictRequest"):
        list(server.channel.stream_stream("/regard.StreamService/PredictStream")(iter([b"\xff"])))


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_the_asynchronous_client(start, scheme):
    server = start().server
    port = server.rest_port if scheme == "http" else server.grpc_port

    async def read(text):
        async with AsyncClient(f"{scheme}://127.0.0.1:{port}", "streamer") as client:
            return [token async for token in client.stream(text)]

    first, last = asyncio.run(read("aé"))
    assert first == {"text": "É", "token": "É", "log_probability": -0.5}
    assert last == {**first, "text": "A", "token": "A", "translation": "ÉA", "score": -1.0}
    (blank,) = asyncio.run(read(""))
    assert (blank["text"], blank["translation"]) == ("", "")


def test_what_cannot_stream_is_an_error(start):
    server = start(names=("streamer", "reverser", "beam"))
    for model, rows, message in [
        ("reverser", ["a"], "no signature 'stream_start'"),
        ("beam", ["a"], "Its search (beam) compares outputs."),
        ("streamer", ["a", "b"], "has the shape [2], not [1]"),
        ("streamer", [1], "not of the type string"),
        ("none", ["a"], "No version of model 'none'"),
    ]:
        response = post(server, f"{model}:stream", {"instances": rows})
        assert response.status_code in (400, 404)
        assert message in response.json()["error"]


def test_a_token_is_required(start):
    server = start(token="secret")
    assert post(server, "streamer:stream", {"instances": ["a"]}).status_code == 401
    with pytest.raises(ClientError, match="UNAUTHENTICATED"):
        list(client_of(server, scheme="grpc").stream("a"))


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_client_that_leaves_ends_its_stream(start, monkeypatch, scheme):
    steps, server = Steps(monkeypatch), start()
    with client_of(server, scheme=scheme) as client:
        stream = client.stream(ALPHABET)
        steps.allow(1)
        assert next(stream)["text"] == "Z"
        stream.close()
    steps.allow(3)  # at most the step that waits, and one that began before the server knew
    wait_for(lambda: is_idle(server))
    assert steps.count <= 3
    assert 'request_count{model_name="streamer",status="CANCELLED"} 1' in (
        server.manager.metrics.text()
    )


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_streams_are_limited_and_do_not_block_batches(start, monkeypatch, scheme):
    steps = Steps(monkeypatch)
    server = start(ManagerOptions(poll_seconds=0, threads=1, max_streams=1))
    with client_of(server, scheme=scheme) as client:
        stream = client.stream("abc")
        steps.allow(2)
        assert [next(stream)["text"], next(stream)["text"]] == ["C", "B"]
        with pytest.raises(ClientError, match="UNAVAILABLE: Too many streams"):
            list(client.stream("x"))
        threading.Timer(0.3, steps.allow, [1]).start()
        # The only thread runs a step of the stream; the batch comes after it.
        assert client.predict(["xy"])[0]["translation"] == "YX"
        assert next(stream)["translation"] == "CBA"
        assert next(stream, None) is None
        wait_for(lambda: is_idle(server))
        steps.allow(1)
        assert [one["text"] for one in client.stream("x")] == ["X"]


def test_the_time_of_a_stream_is_limited(start, monkeypatch):
    steps = Steps(monkeypatch, seconds=0.01)
    server = start(ManagerOptions(poll_seconds=0, run_seconds=2.0))
    for scheme in ("http", "grpc"):
        with client_of(server, scheme=scheme) as client:
            list(client.stream("a"))  # the first step of a model takes longer
            steps.seconds = 0.5
            stream = client.stream(ALPHABET)
            assert next(stream)["text"] == "Z"
            with pytest.raises(ClientError, match="DEADLINE_EXCEEDED: The stream took more than 2"):
                list(stream)
        steps.seconds = 0.01
    wait_for(lambda: is_idle(server))


def test_a_stream_may_last_longer_than_a_client_may_pause(start, monkeypatch):
    Steps(monkeypatch, seconds=0.4)
    server = start(header_seconds=0.5)
    assert "".join(one["text"] for one in client_of(server).stream("abcdefgh")) == "HGFEDCBA"


def test_a_stream_stays_on_its_version_and_ends_before_a_shutdown(
    run, folder, tmp_path, monkeypatch
):
    steps = Steps(monkeypatch)
    shutil.copytree(folder / "streamer" / "1", tmp_path / "streamer" / "1")
    models = [ModelConfig("streamer", tmp_path / "streamer")]
    server = run(models, ManagerOptions(poll_seconds=0))
    with client_of(server) as client:
        stream = client.stream("abc")
        steps.allow(1)
        assert next(stream)["text"] == "C"
        shutil.copytree(folder / "streamer" / "1", tmp_path / "streamer" / "2")
        server.do(server.manager.poll())
        assert client.status()[2] == "AVAILABLE"
        threading.Timer(0.5, steps.allow, [2]).start()
        server.do(server.server.stop(20))
        assert [one["text"] for one in stream] == ["B", "A"]


def test_a_complete_stream_is_one_line_of_the_request_log(start, tmp_path):
    path = tmp_path / "log.jsonl"
    server = start(ManagerOptions(poll_seconds=0, request_log=RequestLogOptions(path)))
    post(server, "streamer:stream", {"instances": ["abc"]})
    wait_for(lambda: path.exists() and path.stat().st_size)
    (line,) = map(json.loads, path.read_text().splitlines())
    assert (line["signature"], line["status"], line["version"]) == (STEP, "OK", 1)
    assert line["inputs"] == {"source": 3}
    assert (line["outputs"]["translation"], line["score"]) == (3, -1.5)
