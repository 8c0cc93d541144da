"""The whole server: both protocols, reloads, batches, limits, version swaps, unusual texts."""

import base64
import collections
import shutil
import threading
import time

import grpc
import httpx
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import model_management_pb2

from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import BatchingOptions, ManagerOptions
from tests import fake_models
from tests.serving.server.requests import post, predict_request


def test_the_models_can_be_replaced_while_it_runs(run, saved):
    options = ManagerOptions(poll_seconds=0, reload_roots=(saved,))
    server = run([ModelConfig("sorter", saved / "sorter")], options)

    def version():
        return server.predictions.Predict(
            predict_request("r", source=["a"])
        ).model_spec.version.value

    requested = model_management_pb2.ReloadConfigRequest()
    entry = requested.config.model_config_list.config.add()
    entry.name, entry.model_platform = "r", "tensorflow"
    entry.base_path = str(saved / "reverser")
    assert server.models.HandleReloadConfigRequest(requested).status.error_code == 0
    assert version() == 2
    with pytest.raises(grpc.RpcError):
        server.predictions.Predict(predict_request("sorter"))
    entry.version_labels["canary"] = 1  # which is not loaded
    refused = server.models.HandleReloadConfigRequest(requested).status
    assert refused.error_code == 9
    assert "which is not available" in refused.error_message
    entry.base_path = "relative"
    assert server.models.HandleReloadConfigRequest(requested).status.error_code == 3
    assert version() == 2


@pytest.mark.parametrize(
    ("roots", "folder", "message"),
    [
        ([], "reverser", "Clients may not replace the models."),
        ([], None, "Clients may not replace the models."),
        (["sorter"], "reverser", "clients may not load models from"),
        (["sorter"], "sorter/../reverser", "clients may not load models from"),
        (["sorter"], "sorter/link", "clients may not load models from"),
        (["revers"], "reverser", "clients may not load models from"),
    ],
)
def test_clients_load_only_from_allowed_folders(run, tmp_path, saved, roots, folder, message):
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    (tmp_path / "sorter" / "link").symlink_to(tmp_path / "reverser")
    options = ManagerOptions(reload_roots=tuple(tmp_path / name for name in roots))
    server = run([ModelConfig("sorter", saved / "sorter")], options)
    requested = model_management_pb2.ReloadConfigRequest()
    requested.config.model_config_list.SetInParent()
    if folder is not None:
        entry = requested.config.model_config_list.config.add()
        entry.name, entry.model_platform = "r", "tensorflow"
        entry.base_path = str(tmp_path / folder)
    status = server.models.HandleReloadConfigRequest(requested).status
    assert status.error_code == 7
    assert message in status.error_message
    assert server.manager.names == ["sorter"]


def test_batches(run, saved):
    batching = BatchingOptions(max_batch_size=4, timeout_seconds=0.02)
    server = run([ModelConfig("r", saved / "reverser")], ManagerOptions(batching=batching))
    calls = [
        server.predictions.Predict.future(predict_request("r", source=["ab" * n])) for n in range(8)
    ]
    for n, call in enumerate(calls):
        actual = tf.make_ndarray(call.result().outputs["translation"])
        assert actual.tolist() == [b"BA" * n]
    text = server.rest.get("/monitoring/prometheus/metrics").text
    assert ":tensorflow:serving:batching_session:wrapped_run_count{} " in text


def test_many_calls_of_one_connection_are_answered(run, saved):
    """gRPC refuses calls beyond a limit, which counts those that it has just answered too."""
    server = run([ModelConfig("r", saved / "reverser")], ManagerOptions())
    calls = collections.deque()  # 100 at once
    for number in range(1000):
        calls.append(server.predictions.Predict.future(predict_request("r", source=["ab"])))
        if number >= 100:
            calls.popleft().result()
    for call in calls:
        call.result()


def test_the_size_of_a_request_is_limited(run, saved):
    server = run([ModelConfig("r", saved / "reverser")], ManagerOptions(), max_request_bytes=2000)
    answer = post(server, "r:predict", {"instances": ["a" * 3000]})
    assert answer.status_code == 413
    assert answer.json() == {"error": "The body has more than 2000 bytes."}
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(predict_request("r", source=["a" * 3000]))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_port_in_use_is_an_error(run, saved):
    server = run([ModelConfig("r", saved / "reverser")], ManagerOptions())
    for ports in (
        {"grpc_port": None, "rest_port": server.server.rest_port},
        {"grpc_port": server.server.grpc_port, "rest_port": None},
    ):
        with pytest.raises(OSError, match="Cannot bind"):
            run([], ManagerOptions(), **ports)


def test_it_listens_on_localhost_only(server):
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.2:{server.server.rest_port}/v1/models/reverser", timeout=5)


def test_version_swaps_under_load(run, saved, tmp_path):
    """No request fails, and each output comes from one version.

    Even versions return weights of 0.5, odd ones of 1.
    """
    base = tmp_path / "swapped"
    shutil.copytree(saved / "reverser" / "1", base / "1")
    batching = BatchingOptions(max_batch_size=8, timeout_seconds=0.001)
    server = run(
        [ModelConfig("r", base)], ManagerOptions(poll_seconds=0.05, batching=batching, threads=2)
    )
    stop, versions, wrong = threading.Event(), set(), []

    def query(number):
        while not stop.is_set():
            requested = predict_request("r", "align", source=[f"client {number}"])
            try:
                answer = server.predictions.Predict(requested)
            except grpc.RpcError as error:
                wrong.append(error)
                continue
            version = answer.model_spec.version.value
            versions.add(version)
            weight = tf.make_ndarray(answer.outputs["alignment"]).max()
            text = tf.make_ndarray(answer.outputs["translation"])[0]
            if weight != (1.0 if version % 2 else 0.5) or text != f"CLIENT {number}"[::-1].encode():
                wrong.append((version, weight, text))

    threads = [threading.Thread(target=query, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for version in range(2, 5):
        created = tmp_path / "next"
        shutil.copytree(saved / "reverser" / str(2 - version % 2), created)
        created.rename(base / str(version))
        deadline = time.monotonic() + 60
        while version not in versions and time.monotonic() < deadline:
            time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert versions == {1, 2, 3, 4}


def test_an_invalid_client_does_not_disturb_others(run, tmp_path):
    fake_models.save(fake_models.Reverser("refuse"), tmp_path / "r" / "1")
    batching = BatchingOptions(timeout_seconds=0.05)
    server = run([ModelConfig("r", tmp_path / "r")], ManagerOptions(batching=batching))
    invalid = predict_request("r", source=["x" * (fake_models.MOST_LETTERS + 1)])

    def send(request):
        for _ in range(20):
            try:
                server.predictions.Predict(request)
                statuses.append("OK")
            except grpc.RpcError as error:
                statuses.append(error.code().name)

    statuses = []
    requests = [invalid, *(predict_request("r", source=["ab"] * n) for n in range(1, 8))]
    threads = [threading.Thread(target=send, args=[request]) for request in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == ["INVALID_ARGUMENT"] * 20 + ["OK"] * 140


def test_requests_in_progress_finish_at_shutdown(run, saved):
    options = ManagerOptions(poll_seconds=0, batching=BatchingOptions(max_request_rows=3000))
    server = run([ModelConfig("r", saved / "reverser")], options)
    long = ["ab" * 50] * 3000
    requested = predict_request("r", "align", outputs=["score"], source=long)
    call = server.predictions.Predict.future(requested)
    time.sleep(0.1)
    server.do(server.server.stop(30))
    assert tf.make_ndarray(call.result().outputs["score"]).shape == (3000,)
    with pytest.raises(grpc.RpcError):
        server.predictions.Predict(predict_request("r", source=["a"]), timeout=2)


@pytest.mark.parametrize(
    "text", ["", "\x00", "a\x00b", "שלום עולם", "👩‍👩‍👧‍👦" * 50, "x" * 100_000, "\u202e", "é" * 3]
)
def test_both_protocols_return_the_same_outputs(server, text):
    answer = post(server, "reverser:predict", {"instances": [text]})
    assert answer.status_code == 200
    (over_rest,) = answer.json()["predictions"]
    over_grpc = server.predictions.Predict(predict_request(source=[text])).outputs
    assert tf.make_ndarray(over_grpc["translation"])[0].decode() == over_rest["translation"]
    assert tf.make_ndarray(over_grpc["score"])[0] == np.float32(over_rest["score"])


def test_bytes_that_are_not_utf8(server):
    raw = {"instances": [{"b64": base64.b64encode(b"\xff\xfe").decode()}]}
    assert post(server, "reverser:predict", raw).status_code == 200
    call = server.predictions.Predict.future(predict_request(source=[b"\xff\xfe"]))
    assert call.code() is grpc.StatusCode.OK
