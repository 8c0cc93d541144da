"""The server from outside: routes, bodies, codes and texts over REST, and the same over gRPC."""

from __future__ import annotations

import base64
import json
import random
import shutil
import threading
import time

import grpc
import httpx
import numpy as np
import pytest
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    predict_pb2,
    regression_pb2,
)

from serving.local.manager import Manager, Options
from serving.local.model_config import Batching, ModelConfig, Policy
from serving.local.server import Listening, Server
from tests.serving.local.conftest import Running


@pytest.fixture(scope="module")
def server(saved):
    models = [
        ModelConfig("reverser", saved / "reverser", Policy(None, every=True), {"stable": 1}),
        ModelConfig("sorter", saved / "sorter"),
        ModelConfig("none", saved / "nowhere"),
    ]
    manager = Manager(models, Options(poll_seconds=0))
    running = Running(manager, Server(manager, Listening(grpc_port=0, rest_port=0)))
    yield running
    running.stop()


def post(server, path, body, **more):
    content = body if isinstance(body, bytes) else json.dumps(body)
    return server.rest.post(f"/v1/models/{path}", content=content, **more)


def test_rows(server):
    answer = post(server, "reverser:predict", {"instances": ["abc", "é"]})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.text == (
        '{\n    "predictions": [\n        {\n            "score": -1.5,\n'
        '            "translation": "CBA"\n        },\n        {\n            "score": -0.5,\n'
        '            "translation": "É"\n        }\n    ]\n}'
    )


def test_columns(server):
    body = {"inputs": {"source": ["ab"]}, "signature_name": "align"}
    found = post(server, "reverser:predict", body).json()["outputs"]
    assert found["target_pieces"] == [["B", "A", "</s>"]]
    assert found["alignment"][0][0] == [0.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("path", "weight"),
    [
        ("reverser", 0.5),
        ("reverser/versions/1", 1.0),
        ("reverser/versions/2", 0.5),
        ("reverser/versions/0001", 1.0),
        ("reverser/labels/stable", 1.0),
        ("Reverser", None),
    ],
)
def test_versions_and_labels(server, path, weight):
    body = {"instances": ["a"], "signature_name": "align"}
    answer = post(server, f"{path}:predict", body)
    if weight is None:
        assert answer.json() == {"error": "Servable not found for request: Latest(Reverser)"}
    else:
        assert answer.json()["predictions"][0]["alignment"][0][0] == weight


def test_the_path_may_be_in_capitals(server):
    assert server.rest.post("/V1/Models/reverser:PREDICT", content=b"{}").status_code == 400


def test_points(server):
    points = [[0.5, 0.0], [0.25, 1.0], [0.75, 0]]
    row = {"points": points, "points_length": 3}
    found = post(server, "sorter:predict", {"instances": [row]}).json()
    assert found["predictions"] == [{"order": [1, 0, 2], "order_length": 3, "score": -0.75}]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("reverser:predict", b"", 400, "JSON Parse error: The document is empty"),
        ("reverser:predict", b"{}", 400, "Missing 'inputs' or 'instances' key"),
        ("nobody:predict", b"", 400, "JSON Parse error: The document is empty"),
        (
            "nobody:predict",
            b'{"instances": [1]}',
            404,
            "Servable not found for request: Latest(nobody)",
        ),
        (
            "reverser/versions/9:predict",
            b'{"instances": [1]}',
            404,
            "Servable not found for request: Specific(reverser, 9)",
        ),
        (
            "reverser/labels/canary:predict",
            b'{"instances": [1]}',
            400,
            "Unrecognized servable version label: canary",
        ),
        (
            f"reverser/versions/{10**20}:predict",
            b"{}",
            400,
            f"Failed to convert version: {10**20} to numeric.",
        ),
        (
            "reverser:predict",
            b'{"signature_name": "no", "instances": [1]}',
            400,
            'Serving signature name: "no" not found in signature def',
        ),
        (
            "reverser:predict",
            b'{"instances": [1.0]}',
            400,
            "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: JSON Value:"
            " 1.0 Type: Number is not of expected type: string",
        ),
        (
            "reverser:predict",
            b'{"instances": [["a"]]}',
            400,
            "Input source has the shape [1,1], which is not compatible with expected shape [?]",
        ),
        ("reverser:classify", b"{}", 400, "key 'examples' is expected and was not found"),
        (
            "reverser:regress",
            b'{"examples": [{}]}',
            400,
            "Expected regression signature method_name to be tensorflow/serving/regress. Was:"
            " tensorflow/serving/predict",
        ),
        ("reverser:guess", b"{}", 400, "Malformed request: POST /v1/models/reverser:guess"),
        ("reverser", b"{}", 400, "Malformed request: POST /v1/models/reverser"),
        ("..%2F..%2Fetc:predict", b'{"instances": [1]}', 404, "Latest(../../etc)"),
        (
            "sorter:predict",
            b'{"instances": [{"points": [[1, 2]], "points_length": 1}]}',
            400,
            "a row has fewer than the 2 points of model.least",
        ),
    ],
)
def test_what_is_refused(server, path, body, status, message):
    answer = post(server, path, body)
    assert answer.status_code == status
    assert message in answer.json()["error"]
    for hidden in ("Traceback", "/tmp", "site-packages", "{{node"):
        assert hidden not in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods(server, method):
    answer = server.rest.request(method, "/v1/models/reverser")
    assert answer.status_code == 400
    assert answer.json() == {"error": f"Malformed request: {method} /v1/models/reverser"}


def test_paths_outside_of_the_api(server):
    answer = server.rest.get("/v2/models")
    assert (answer.status_code, answer.headers["content-type"][:9]) == (404, "text/html")
    assert server.rest.get("/v1/models").json() == {"error": "Missing model name in request."}
    assert server.rest.get("/v1/nothing").status_code == 400


def test_options(server):
    path = "/v1/models/reverser"
    assert server.rest.options(path).status_code == 400
    assert server.rest.options(path, headers={"Origin": "https://a.b"}).status_code == 200


def test_status(server):
    found = server.rest.get("/v1/models/reverser")
    assert found.json() == {
        "model_version_status": [
            {
                "version": version,
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
            for version in ("2", "1")
        ]
    }
    one = server.rest.get("/v1/models/reverser/versions/1").json()["model_version_status"]
    assert [entry["version"] for entry in one] == ["1"]
    # A label is not looked at there.
    both = server.rest.get("/v1/models/reverser/labels/stable").json()["model_version_status"]
    assert len(both) == 2
    for path, message in [
        ("none", "Could not find any versions of model none"),
        ("nobody", "Could not find any versions of model nobody"),
        ("reverser/versions/9", "Could not find version 9 of model reverser"),
    ]:
        answer = server.rest.get(f"/v1/models/{path}")
        assert (answer.status_code, answer.json()) == (404, {"error": message})


def test_metadata(server):
    found = server.rest.get("/v1/models/reverser/versions/1/metadata").json()
    assert found["model_spec"] == {"name": "reverser", "signature_name": "", "version": "1"}
    signatures = found["metadata"]["signature_def"]["signature_def"]
    assert {"serving_default", "align", "score", "__saved_model_init_op"} <= set(signatures)
    source = signatures["align"]["inputs"]["source"]
    assert source["dtype"] == "DT_STRING"
    assert source["tensor_shape"] == {
        "dim": [{"size": "-1", "name": ""}],
        "unknown_rank": False,
    }
    assert signatures["align"]["method_name"] == "tensorflow/serving/predict"


def test_metrics(server):
    post(server, "reverser:predict", {"instances": ["a", "b"]})
    post(server, "made-up-by-somebody:predict", {"instances": ["a"]})
    text = server.rest.get("/monitoring/prometheus/metrics").text
    assert "# TYPE :tensorflow:serving:request_count counter\n" in text
    assert ':tensorflow:serving:request_count{model_name="reverser",status="OK"} ' in text
    assert (
        ':tensorflow:serving:request_latency_count{model_name="reverser",API="predict",'
        'entrypoint="REST"} ' in text
    )
    assert "made-up" not in text
    assert "# TYPE :tensorflow:serving:runtime_latency histogram" in text


def request(model="reverser", signature="", version=None, label="", outputs=(), **inputs):
    made = predict_pb2.PredictRequest(output_filter=outputs)
    made.model_spec.name = model
    made.model_spec.signature_name = signature
    if version is not None:
        made.model_spec.version.value = version
    if label:
        made.model_spec.version_label = label
    for name, value in inputs.items():
        made.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return made


def test_predict_over_grpc(server):
    answer = server.predictions.Predict(request(source=["abc", "é"]))
    assert answer.model_spec.name == "reverser"
    assert answer.model_spec.signature_name == "serving_default"
    assert answer.model_spec.version.value == 2
    assert set(answer.outputs) == {"translation", "score"}
    texts = tf.make_ndarray(answer.outputs["translation"])
    assert [text.decode() for text in texts] == ["CBA", "É"]
    one = server.predictions.Predict(request(label="stable", outputs=["score"], source=["ab"]))
    assert one.model_spec.version.value == 1
    assert set(one.outputs) == {"score"}
    assert server.predictions.Predict(request(source=np.zeros(0, object))).outputs["score"]


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (predict_pb2.PredictRequest(), "INVALID_ARGUMENT", "Missing ModelSpec"),
        (request(""), "INVALID_ARGUMENT", "ModelSpec has no name specified."),
        (request("m"), "NOT_FOUND", "Servable not found for request: Latest(m)"),
        (request(version=7), "NOT_FOUND", "Specific(reverser, 7)"),
        (request(label="x"), "INVALID_ARGUMENT", "Unrecognized servable version label: x"),
        (
            request(signature="no", source=["a"]),
            "FAILED_PRECONDITION",
            'Serving signature key "no" not found.',
        ),
        (
            request(),
            "INVALID_ARGUMENT",
            "input size does not match signature: 0!=1 len({}) != len({source}). Sent extra: {}."
            " Missing but required: {source}.",
        ),
        (
            request(text=["a"]),
            "INVALID_ARGUMENT",
            "input tensor alias not found in signature: text. Inputs expected to be in the set"
            " {source}.",
        ),
        (request(source=[1.5]), "INVALID_ARGUMENT", "to be string but float is provided"),
        (request(source="a"), "INVALID_ARGUMENT", "has the shape []"),
        (
            request(source=["a"], outputs=["y"]),
            "INVALID_ARGUMENT",
            "output tensor alias not found in signature: y Outputs expected to be in the set"
            " {score,translation}.",
        ),
        (
            request(source=["a"], outputs=["score", "score"]),
            "INVALID_ARGUMENT",
            "duplicate output tensor alias: score",
        ),
    ],
)
def test_what_is_refused_over_grpc(server, asked, code, message):
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(asked)
    assert caught.value.code().name == code
    assert message in caught.value.details()


def test_a_tensor_that_only_says_it_is_huge(server):
    asked = request(source=["a"])
    asked.inputs["source"].tensor_shape.dim[0].size = 10**12
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(asked)
    assert caught.value.code().name == "INVALID_ARGUMENT"
    asked.inputs["source"].tensor_shape.dim[0].size = -5
    with pytest.raises(grpc.RpcError):
        server.predictions.Predict(asked)


def test_metadata_over_grpc(server):
    asked = get_model_metadata_pb2.GetModelMetadataRequest()
    asked.model_spec.name = "reverser"
    for fields, message in [([], "at least one metadata_field"), (["x"], "x is not supported")]:
        del asked.metadata_field[:]
        asked.metadata_field.extend(fields)
        with pytest.raises(grpc.RpcError) as caught:
            server.predictions.GetModelMetadata(asked)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert message in caught.value.details()
    asked.metadata_field[:] = ["signature_def"]
    found = server.predictions.GetModelMetadata(asked)
    assert found.model_spec.version.value == 2
    signatures = get_model_metadata_pb2.SignatureDefMap()
    found.metadata["signature_def"].Unpack(signatures)
    assert signatures.signature_def["align"].inputs["source"].dtype == tf.string.as_datatype_enum


def test_status_over_grpc(server):
    asked = get_model_status_pb2.GetModelStatusRequest()
    asked.model_spec.name = "reverser"
    found = server.models.GetModelStatus(asked).model_version_status
    assert [(one.version, one.state) for one in found] == [(2, 30), (1, 30)]
    asked.model_spec.name = "nobody"
    with pytest.raises(grpc.RpcError) as caught:
        server.models.GetModelStatus(asked)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_other_methods_over_grpc(server):
    for call, asked in [
        (server.predictions.Classify, classification_pb2.ClassificationRequest()),
        (server.predictions.Regress, regression_pb2.RegressionRequest()),
        (server.predictions.MultiInference, inference_pb2.MultiInferenceRequest()),
    ]:
        if hasattr(asked, "model_spec"):
            asked.model_spec.name = "reverser"
        with pytest.raises(grpc.RpcError) as caught:
            call(asked)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_health(server):
    stub = health_pb2_grpc.HealthStub(server.channel)
    for service in ("", "tensorflow.serving.PredictionService"):
        found = stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert found.status == health_pb2.HealthCheckResponse.SERVING


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


def test_nonsense_is_never_answered_with_a_crash(server):
    """Bodies made of pieces of good ones, and bytes: no 500, and the server goes on."""
    draw = random.Random(5)
    pieces = [
        '"instances"',
        '"inputs"',
        ":",
        ",",
        "[",
        "]",
        "{",
        "}",
        '"source"',
        '"a"',
        "1",
        "1e5",
    ]
    pieces += [
        "-",
        "null",
        "true",
        "NaN",
        '"b64"',
        '"/w=="',
        '"\\ud800"',
        '"signature_name"',
        '"align"',
    ]
    for _ in range(5000):
        body = "".join(draw.choices(pieces, k=draw.randint(1, 14))).encode()
        if draw.random() < 0.3:
            body = b'{"instances": [' + body + b"]}"
        if draw.random() < 0.1:
            body += draw.randbytes(3)
        answer = post(server, "reverser:predict", body)
        assert answer.status_code < 500 or answer.status_code == 501, (body, answer.text)
    found = post(server, "reverser:predict", {"instances": ["ok"]}).json()
    assert found["predictions"][0]["translation"] == "KO"


def test_nonsense_over_grpc(server):
    """Bytes that are no message, messages cut short, and tensors that are not what they say."""
    draw = random.Random(6)
    call = server.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    good = request(source=["abc", "de"], outputs=["score"]).SerializeToString()
    for _ in range(500):
        message = bytearray(draw.randbytes(draw.randint(0, 60)) if draw.random() < 0.3 else good)
        for _ in range(draw.randint(0, 4)):
            if message:
                message[draw.randrange(len(message))] = draw.randrange(256)
        if draw.random() < 0.3:
            message = message[: draw.randint(0, len(message))]
        answer = call.future(bytes(message), timeout=20)
        refused = answer.exception()
        told = (answer.code(), answer.details() or "") if refused else (None, "")
        assert told[0] is not grpc.StatusCode.DEADLINE_EXCEEDED
        for hidden in ("Traceback", "/tmp", "site-packages", "its log says why"):
            assert hidden not in told[1]
    assert server.predictions.Predict(request(source=["ok"])).outputs["translation"]


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


def test_bytes_that_are_no_text_are_answered_or_refused(server):
    raw = {"instances": [{"b64": base64.b64encode(b"\xff\xfe").decode()}]}
    assert post(server, "reverser:predict", raw).status_code in (200, 400)
    call = server.predictions.Predict.future(request(source=[b"\xff\xfe"]))
    assert call.code() in (grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT)
