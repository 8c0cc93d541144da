"""The server as a whole: both protocols alike, other models, batches, limits, swaps, odd texts."""

from __future__ import annotations

import base64
import shutil
import threading
import time

import grpc
import httpx
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import model_management_pb2

from serving.local.manager import Options
from serving.local.model_config import Batching, ModelConfig
from tests.serving.local.asking import post, request


def test_both_protocols_give_the_same(server):
    over_rest = post(server, "reverser:predict", {"inputs": ["abc", "x" * 500, ""]}).json()
    over_grpc = server.predictions.Predict(request(source=["abc", "x" * 500, ""])).outputs
    scores = tf.make_ndarray(over_grpc["score"])
    np.testing.assert_array_equal(np.float32(over_rest["outputs"]["score"]), scores)


def test_other_models_are_taken_while_it_runs(run, saved):
    server = run([ModelConfig("sorter", saved / "sorter")], Options(poll_seconds=0))
    asked = model_management_pb2.ReloadConfigRequest()
    entry = asked.config.model_config_list.config.add()
    entry.name, entry.model_platform = "r", "tensorflow"
    entry.base_path = str(saved / "reverser")
    assert server.models.HandleReloadConfigRequest(asked).status.error_code == 0
    assert server.predictions.Predict(request("r", source=["ab"])).model_spec.version.value == 2
    with pytest.raises(grpc.RpcError):
        server.predictions.Predict(request("sorter"))
    entry.version_labels["canary"] = 1  # which is not loaded
    refused = server.models.HandleReloadConfigRequest(asked).status
    assert refused.error_code == 9
    assert "not currently available for inference" in refused.error_message
    entry.base_path = "relative"
    assert server.models.HandleReloadConfigRequest(asked).status.error_code == 3
    assert server.predictions.Predict(request("r", source=["ab"])).model_spec.version.value == 2


def test_batches(run, saved):
    batching = Batching(max_batch_size=4, batch_timeout_micros=20_000, num_batch_threads=2)
    server = run([ModelConfig("r", saved / "reverser")], Options(batching=batching))
    calls = [server.predictions.Predict.future(request("r", source=["ab" * n])) for n in range(8)]
    for n, call in enumerate(calls):
        found = tf.make_ndarray(call.result().outputs["translation"])
        assert found.tolist() == [b"BA" * n]
    text = server.rest.get("/monitoring/prometheus/metrics").text
    assert ":tensorflow:serving:batching_session:wrapped_run_count{} " in text
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(request("r", source=["a"] * 5))
    assert "Task size 5 is larger than maximum input batch size 4" in caught.value.details()


def test_a_body_may_not_be_too_long(run, saved):
    server = run([ModelConfig("r", saved / "reverser")], Options(), most_bytes=2000)
    answer = post(server, "r:predict", {"instances": ["a" * 3000]})
    assert (answer.status_code, answer.json()["error"]) == (
        429,
        "The body has more than 2000 bytes.",
    )
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(request("r", source=["a" * 3000]))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_port_that_is_taken_is_told(run, saved):
    server = run([ModelConfig("r", saved / "reverser")], Options())
    for ports in (
        {"grpc_port": None, "rest_port": server.server.rest_port},
        {"grpc_port": server.server.grpc_port, "rest_port": None},
    ):
        with pytest.raises(OSError, match="cannot be bound"):
            run([], Options(), **ports)


def test_it_listens_to_its_own_machine_alone(server):
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.2:{server.server.rest_port}/v1/models/reverser", timeout=5)


def test_swaps_under_load_fail_nothing_and_mix_nothing(run, saved, tmp_path):
    """Even versions tell weights of a half, odd ones of one; each answer is of one version."""
    base = tmp_path / "swapped"
    shutil.copytree(saved / "reverser" / "1", base / "1")
    batching = Batching(max_batch_size=8, batch_timeout_micros=1000, max_enqueued_batches=100)
    server = run([ModelConfig("r", base)], Options(poll_seconds=0.05, batching=batching, threads=2))
    stop, seen, wrong = threading.Event(), set(), []

    def ask(number):
        while not stop.is_set():
            asked = request("r", "align", source=[f"client {number}"])
            try:
                answer = server.predictions.Predict(asked)
            except grpc.RpcError as error:
                wrong.append(error)
                continue
            version = answer.model_spec.version.value
            seen.add(version)
            weight = tf.make_ndarray(answer.outputs["alignment"]).max()
            text = tf.make_ndarray(answer.outputs["translation"])[0]
            if weight != (1.0 if version % 2 else 0.5) or text != f"CLIENT {number}"[::-1].encode():
                wrong.append((version, weight, text))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for version in range(2, 8):
        made = tmp_path / "next"
        shutil.copytree(saved / "reverser" / str(2 - version % 2), made)
        made.rename(base / str(version))
        deadline = time.monotonic() + 60
        while version not in seen and time.monotonic() < deadline:
            time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert seen == set(range(1, 8))


def test_what_is_being_answered_is_answered_when_it_stops(run, saved):
    server = run([ModelConfig("r", saved / "reverser")], Options(poll_seconds=0))
    long = ["ab" * 50] * 3000
    asked = request("r", "align", outputs=["score"], source=long)
    call = server.predictions.Predict.future(asked)
    time.sleep(0.1)
    server.do(server.server.stop(30))
    assert tf.make_ndarray(call.result().outputs["score"]).shape == (3000,)
    with pytest.raises(grpc.RpcError):
        server.predictions.Predict(request("r", source=["a"]), timeout=2)


@pytest.mark.parametrize(
    "text", ["", "\x00", "a\x00b", "שלום עולם", "👩‍👩‍👧‍👦" * 50, "x" * 100_000, "\u202e", "é" * 3]
)
def test_any_text_is_answered(server, text):
    answer = post(server, "reverser:predict", {"instances": [text]})
    assert answer.status_code == 200
    over_grpc = server.predictions.Predict(request(source=[text]))
    assert (
        tf.make_ndarray(over_grpc.outputs["translation"])[0].decode()
        == (answer.json()["predictions"][0]["translation"])
    )


def test_bytes_that_are_no_text_are_answered(server):
    raw = {"instances": [{"b64": base64.b64encode(b"\xff\xfe").decode()}]}
    assert post(server, "reverser:predict", raw).status_code == 200
    call = server.predictions.Predict.future(request(source=[b"\xff\xfe"]))
    assert call.code() is grpc.StatusCode.OK
