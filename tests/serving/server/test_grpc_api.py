"""The gRPC API: both services, status codes, errors, and the health service."""

import threading

import grpc
import numpy as np
import pytest
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2, predict_pb2

from regard.serving.server import grpc_api
from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions
from tests.processes import wait_for
from tests.serving.server.requests import predict_request


def test_predict_over_grpc(server):
    answer = server.predictions.Predict(predict_request(source=["abc", "é"]))
    assert answer.model_spec.name == "reverser"
    assert answer.model_spec.signature_name == "serving_default"
    assert answer.model_spec.version.value == 2
    assert set(answer.outputs) == {"translation", "score"}
    texts = tf.make_ndarray(answer.outputs["translation"])
    assert [text.decode() for text in texts] == ["CBA", "É"]
    # Clients read the typed fields, as of TensorFlow Serving.
    assert list(answer.outputs["translation"].string_val) == [b"CBA", "É".encode()]
    assert len(answer.outputs["score"].float_val) == 2
    one = server.predictions.Predict(
        predict_request(label="stable", outputs=["score"], source=["ab"])
    )
    assert one.model_spec.version.value == 1
    assert set(one.outputs) == {"score"}
    assert server.predictions.Predict(predict_request(source=np.zeros(0, object))).outputs["score"]


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"model": ""}, "INVALID_ARGUMENT", "The request names no model."),
        ({"model": "m"}, "NOT_FOUND", "No version of model 'm' is available."),
        ({"version": 7}, "NOT_FOUND", "No version 7 of model 'reverser'"),
        ({"label": "x"}, "INVALID_ARGUMENT", "has no version label 'x'"),
        ({"signature": "no"}, "FAILED_PRECONDITION", "The model has no signature 'no'."),
        ({"text": ["a"]}, "INVALID_ARGUMENT", "Missing inputs: source. Unknown inputs: text."),
        ({"source": [1.5]}, "INVALID_ARGUMENT", "type float32, expected string"),
        ({"source": "a"}, "INVALID_ARGUMENT", "has the shape []"),
        ({"source": ["a"], "outputs": ["y"]}, "INVALID_ARGUMENT", "outputs are: score, transl"),
        ({"source": ["a"], "outputs": ["score"] * 2}, "INVALID_ARGUMENT", "is requested twice."),
    ],
)
def test_rejected_requests_over_grpc(server, fields, code, message):
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(predict_request(**fields))
    assert caught.value.code().name == code
    assert message in caught.value.details()


def test_a_request_without_a_model_is_rejected(server):
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(predict_pb2.PredictRequest())
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == "The request has no model_spec."


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (10**12, "The inputs declare 1000000000000 values in a message of"),
        (1 << 26, "The inputs declare 67108864 values in a message of"),
        (-5, "Input source has the incomplete shape [-5]."),
    ],
)
def test_a_tensor_that_declares_an_impossible_shape(server, size, message):
    request = predict_request(source=["a"])
    request.inputs["source"].tensor_shape.dim[0].size = size
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(request)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert message in caught.value.details()


def test_an_input_that_is_sent_twice_cannot_hide_a_large_shape(server):
    """Only the last tensor is checked, so only that one may be built."""
    large = predict_request(source=["a"])
    large.inputs["source"].tensor_shape.dim[0].size = 1 << 60
    both = large.SerializeToString() + predict_request(source=["ab"]).SerializeToString()
    predict = server.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    answer = predict_pb2.PredictResponse.FromString(predict(both))
    assert list(answer.outputs["translation"].string_val) == [b"BA"]


def test_one_value_may_stand_for_many(server):
    request = predict_request(source=["ab"])
    request.inputs["source"].tensor_shape.dim[0].size = 3
    texts = tf.make_ndarray(server.predictions.Predict(request).outputs["translation"])
    assert texts.tolist() == [b"BA"] * 3


def test_no_tensor_is_built_before_all_names_are_checked(server, monkeypatch):
    """394 bytes that declare 13 tensors of 2^26 values, which would take over 9 GB."""
    built = []
    monkeypatch.setattr(tf, "make_ndarray", built.append)
    request = predict_request(source=["a"])
    for number in range(13):
        proto = request.inputs[f"unknown{number}"]
        proto.dtype, proto.int_val[:] = tf.int32.as_datatype_enum, [1]
        proto.tensor_shape.dim.add().size = 1 << 26
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(request)
    assert caught.value.details().startswith("Missing inputs: none. Unknown inputs: unknown0, ")
    assert built == []


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (0, "Input source has the unknown type 0."),
        (9999, "Input source has the unknown type 9999."),
        (20, "Input source has the unknown type 20."),
        (107, "Input source has the unknown type 107."),
    ],
)
def test_a_type_that_is_not_the_declared_one(server, dtype, message):
    request = predict_request(source=["a"])
    request.inputs["source"].dtype = dtype
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(request)
    assert caught.value.details() == message


def repeated(field, count):
    """A request with many fields that take little space in a message and much in memory."""
    request = predict_request(source=["a"])
    if field == "inputs":
        for number in range(count):
            request.inputs[f"{number}"].dtype = 0
    elif field == "dim":
        shape = request.inputs["source"].tensor_shape
        shape.ClearField("dim")
        shape.MergeFromString(b"\x12\x00" * count)
    elif field == "resource_handle_val":
        request.inputs["source"].MergeFromString(b"\x72\x00" * count)
    else:
        request.inputs["source"].string_val.extend([b"ab"] * count)
    return request


@pytest.mark.parametrize("field", ["inputs", "dim", "resource_handle_val", "string_val"])
def test_many_fields_are_rejected_before_the_message_is_built(server, monkeypatch, field):
    calls = []
    monkeypatch.setattr(ModelManager, "find", lambda *_: calls.append(1))
    with pytest.raises(grpc.RpcError) as caught:
        server.predictions.Predict(repeated(field, 100_000))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "more than 65536 fields" in caught.value.details()
    assert not calls


def test_cut_and_damaged_large_messages(server):
    call = server.channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    content = predict_request(source=[b"a" * 50_000]).SerializeToString()
    for broken in (content[:-1], b"\xff" * 50_000, b"\x0b" * 50_000, content[:40_000]):
        with pytest.raises(grpc.RpcError) as caught:
            call(broken)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_few_requests_may_arrive_slowly(run, saved, monkeypatch):
    monkeypatch.setattr(grpc_api, "_SLOW_SECONDS", 0.05)
    monkeypatch.setattr(grpc_api, "_MAX_SLOW", 2)
    server = run([ModelConfig("reverser", saved / "reverser")], ManagerOptions(poll_seconds=0))
    is_over = threading.Event()

    def wait():
        is_over.wait(30)
        yield predict_request(source=["ab"]).SerializeToString()

    call = server.channel.stream_unary("/tensorflow.serving.PredictionService/Predict")
    calls = [call.future(wait()) for _ in range(6)]
    wait_for(lambda: sum(call.done() for call in calls) == 4)
    assert {call.code() for call in calls if call.done()} == {grpc.StatusCode.UNAVAILABLE}
    is_over.set()
    wait_for(lambda: all(call.done() for call in calls))
    assert sum(call.code() is grpc.StatusCode.OK for call in calls) == 2


def test_calls_without_a_token_take_no_slow_places_of_others(run, saved, tmp_path, monkeypatch):
    monkeypatch.setattr(grpc_api, "_SLOW_SECONDS", 0.05)
    models = [ModelConfig("reverser", saved / "reverser")]
    (tmp_path / "tokens").write_text("secret")
    server = run(models, ManagerOptions(poll_seconds=0), token_file=tmp_path / "tokens")
    is_over = threading.Event()

    def send(seconds):
        is_over.wait(seconds)
        yield predict_request(source=["ab"]).SerializeToString()

    paths = (
        "/tensorflow.serving.ModelService/GetModelStatus",
        "/tensorflow.serving.PredictionService/GetModelMetadata",
        "/grpc.health.v1.Health/Check",
    )
    silent = [
        server.channel.stream_unary(path).future(send(60)) for path in paths for _ in range(16)
    ]
    wait_for(lambda: sum(call.done() for call in silent) >= len(silent) - 16)
    predict = server.channel.stream_unary("/tensorflow.serving.PredictionService/Predict")
    assert predict(send(0.5), metadata=[("authorization", "Bearer secret")])
    assert sum(call.done() for call in silent) == len(silent) - 4
    is_over.set()


def test_metadata_over_grpc(server):
    request = get_model_metadata_pb2.GetModelMetadataRequest()
    request.model_spec.name = "reverser"
    for fields in ([], ["x"]):
        request.metadata_field[:] = fields
        with pytest.raises(grpc.RpcError) as caught:
            server.predictions.GetModelMetadata(request)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "metadata_field" in caught.value.details()
    request.metadata_field[:] = ["signature_def"]
    result = server.predictions.GetModelMetadata(request)
    assert result.model_spec.version.value == 2
    signatures = get_model_metadata_pb2.SignatureDefMap()
    result.metadata["signature_def"].Unpack(signatures)
    assert signatures.signature_def["align"].inputs["source"].dtype == tf.string.as_datatype_enum


def test_status_over_grpc(server):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "reverser"
    result = server.models.GetModelStatus(request).model_version_status
    assert [(status.version, status.state) for status in result] == [(2, 30), (1, 30)]
    request.model_spec.name = "nobody"
    with pytest.raises(grpc.RpcError) as caught:
        server.models.GetModelStatus(request)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_unsupported_methods_over_grpc(server):
    for method in ("Classify", "Regress", "MultiInference"):
        call = server.channel.unary_unary(f"/tensorflow.serving.PredictionService/{method}")
        with pytest.raises(grpc.RpcError) as caught:
            call(b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_health(server):
    stub = health_pb2_grpc.HealthStub(server.channel)
    for service in ("", "tensorflow.serving.PredictionService"):
        result = stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert result.status == health_pb2.HealthCheckResponse.SERVING


def test_invalid_messages(server):
    for service, method in (("Prediction", "Predict"), ("Model", "GetModelStatus")):
        call = server.channel.unary_unary(f"/tensorflow.serving.{service}Service/{method}")
        with pytest.raises(grpc.RpcError) as caught:
            call(b"\xff\xff")
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert caught.value.details() == f"The request is not a valid {method}Request."
