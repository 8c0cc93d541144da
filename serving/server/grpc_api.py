"""TensorFlow Serving's gRPC services: PredictionService and ModelService."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_management_pb2,
    predict_pb2,
)

from regard.serving.server.errors import ServingError, as_serving_error, invalid
from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import check_roots, parse_models
from regard.serving.server.servable import TensorInfo
from regard.serving.server.versions import ModelSpec

# The supported methods with their request messages.
SERVICES: dict[str, dict[str, Any]] = {
    "tensorflow.serving.PredictionService": {
        "Predict": predict_pb2.PredictRequest,
        "GetModelMetadata": get_model_metadata_pb2.GetModelMetadataRequest,
    },
    "tensorflow.serving.ModelService": {
        "GetModelStatus": get_model_status_pb2.GetModelStatusRequest,
        "HandleReloadConfigRequest": model_management_pb2.ReloadConfigRequest,
    },
}
# One value may stand for a whole tensor, so that a message of a few bytes can declare a huge one.
_MAX_FILLED_VALUES = 1 << 16


def create_handlers(manager: ModelManager) -> list[grpc.GenericRpcHandler]:
    """Return the handlers of both services, which reject bytes that are not a message."""
    methods = _Methods(manager)
    return [
        grpc.method_handlers_generic_handler(
            service,
            {name: _create_handler(getattr(methods, name), one) for name, one in requests.items()},
        )
        for service, requests in SERVICES.items()
    ]


def _create_handler(
    method: Callable[[Any], Awaitable[Any]], request_class: Any
) -> grpc.RpcMethodHandler:
    async def call(content: bytes, context: Any) -> bytes:
        try:
            return (await method(request_class.FromString(content))).SerializeToString()
        except DecodeError:
            error = invalid(f"The request is not a valid {request_class.__name__}.")
        except Exception as exception:
            error = as_serving_error(exception)
        return await context.abort(error.code, error.grpc_message)

    return grpc.unary_unary_rpc_method_handler(call)


class _Methods:
    """The supported methods of both services.

    Args:
        manager: the models.
    """

    def __init__(self, manager: ModelManager):
        self._manager = manager

    async def Predict(self, request: Any) -> Any:
        """Run one version of a model on the given inputs."""
        spec = _parse_spec(request)
        with self._manager.track_request(spec.model, "Predict", "GRPC"):
            signature = request.model_spec.signature_name
            declared = {name: _read_info(name, proto) for name, proto in request.inputs.items()}
            self._manager.find(spec).loaded.validate_inputs(signature, declared)
            count, size = sum(math.prod(one.shape) for one in declared.values()), request.ByteSize()
            if count > max(size, _MAX_FILLED_VALUES):
                raise invalid(f"The inputs declare {count} values in a message of {size} bytes.")
            inputs = {name: _to_array(name, proto) for name, proto in request.inputs.items()}
            prediction = await self._manager.predict(
                spec, signature, inputs, list(request.output_filter)
            )
        response = predict_pb2.PredictResponse()
        response.model_spec.name = spec.model
        response.model_spec.version.value = prediction.version
        response.model_spec.signature_name = prediction.signature
        for name, tensor in prediction.outputs.items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(tensor))
        return response

    async def GetModelMetadata(self, request: Any) -> Any:
        """Return the signatures of a model."""
        spec = _parse_spec(request)
        if set(request.metadata_field) != {"signature_def"}:
            raise invalid("`metadata_field` is not [signature_def].")
        version = self._manager.find(spec)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = spec.model
        response.model_spec.version.value = version.number
        response.metadata["signature_def"].Pack(version.loaded.signature_map())
        return response

    async def GetModelStatus(self, request: Any) -> Any:
        """Return the versions of a model and their states."""
        response = get_model_status_pb2.GetModelStatusResponse()
        states = get_model_status_pb2.ModelVersionStatus.State
        for version in self._manager.list_states(_parse_spec(request)):
            status = response.model_version_status.add()
            status.version, status.state = version.number, states.Value(version.state)
            if version.error is not None:
                status.status.error_code = version.error.grpc_number
                status.status.error_message = version.error.message
        return response

    async def HandleReloadConfigRequest(self, request: Any) -> Any:
        """Serve the models of another configuration, if the server allows their folders."""
        response = model_management_pb2.ReloadConfigResponse()
        try:
            models = parse_models(request.config)
            check_roots(models, self._manager.options.reload_roots)
            await self._manager.reload(models)
        except ServingError as error:
            # By the protocol the call succeeds and carries the status in its response.
            response.status.error_code = error.grpc_number
            response.status.error_message = error.grpc_message
        return response


def _parse_spec(request: Any) -> ModelSpec:
    if not request.HasField("model_spec"):
        raise invalid("The request has no model_spec.")
    spec = request.model_spec
    version = spec.version.value if spec.HasField("version") else None
    return ModelSpec(spec.name, version, spec.version_label)


def _read_info(name: str, proto: Any) -> TensorInfo:
    """Return the type and shape that an untrusted ``TensorProto`` declares."""
    shape = tuple(dim.size for dim in proto.tensor_shape.dim)
    if proto.dtype not in types_pb2.DataType.values() or not proto.dtype:
        raise invalid(f"Input {name} has the unknown type {proto.dtype}.")
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in shape):
        raise invalid(f"Input {name} has the incomplete shape {list(shape)}.")
    return TensorInfo(proto.dtype, shape)


def _to_array(name: str, proto: Any) -> np.ndarray:
    """Convert a ``TensorProto`` that fits the signature."""
    try:
        return tf.make_ndarray(proto)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise invalid(f"Input {name} is not a valid tensor: {reason}") from None
