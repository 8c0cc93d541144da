"""Requests for tests: bodies over REST, messages over gRPC."""

import json

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2


def post(server, path, body, **options):
    content = body if isinstance(body, bytes) else json.dumps(body)
    return server.rest.post(f"/v1/models/{path}", content=content, **options)


def predict_request(model="reverser", signature="", version=None, label="", outputs=(), **inputs):
    request = predict_pb2.PredictRequest(output_filter=outputs)
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    if label:
        request.model_spec.version_label = label
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request
