"""gRPC from outside: both services, codes and texts, the service of health."""

from __future__ import annotations

import grpc
import numpy as np
import pytest
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    predict_pb2,
    regression_pb2,
)

from tests.serving.local.asking import request


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


def test_bytes_that_are_no_message(server):
    for service, method in (("Prediction", "Predict"), ("Model", "GetModelStatus")):
        call = server.channel.unary_unary(f"/tensorflow.serving.{service}Service/{method}")
        with pytest.raises(grpc.RpcError) as caught:
            call(b"\xff\xff")
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert caught.value.details() == f"The bytes are no {method}Request"
