"""The gRPC services of TensorFlow Serving: PredictionService and ModelService."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncIterator
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from serving.local.manager import Manager
from serving.local.metadata import metadata_response
from serving.local.model_config import models_of
from serving.local.predictions import Wanted, counted, not_of_this_kind, predict
from serving.local.status import ServingError, failure, invalid

PREDICTION, MODEL = "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"
# What each method takes and gives.
_MESSAGES: dict[str, dict[str, tuple[Any, Any]]] = {
    PREDICTION: {
        "Predict": (predict_pb2.PredictRequest, predict_pb2.PredictResponse),
        "GetModelMetadata": (
            get_model_metadata_pb2.GetModelMetadataRequest,
            get_model_metadata_pb2.GetModelMetadataResponse,
        ),
        "Classify": (
            classification_pb2.ClassificationRequest,
            classification_pb2.ClassificationResponse,
        ),
        "Regress": (regression_pb2.RegressionRequest, regression_pb2.RegressionResponse),
        "MultiInference": (
            inference_pb2.MultiInferenceRequest,
            inference_pb2.MultiInferenceResponse,
        ),
    },
    MODEL: {
        "GetModelStatus": (
            get_model_status_pb2.GetModelStatusRequest,
            get_model_status_pb2.GetModelStatusResponse,
        ),
        "HandleReloadConfigRequest": (
            model_management_pb2.ReloadConfigRequest,
            model_management_pb2.ReloadConfigResponse,
        ),
    },
}
_MOST_VALUES = 1 << 26  # of a tensor


@contextlib.asynccontextmanager
async def _told(context: Any) -> AsyncIterator[None]:
    """Ends a call with the status of what was raised."""
    try:
        yield
        return
    except Exception as error:
        failed = failure(error)
    code = next(one for one in grpc.StatusCode if one.value[0] == failed.code.number)
    await context.abort(code, failed.short)


def services(manager: Manager) -> list[grpc.GenericRpcHandler]:
    """Both services; bytes that are no message are refused as other nonsense is."""
    servicers = {PREDICTION: PredictionService(manager), MODEL: ModelService(manager)}
    return [
        grpc.method_handlers_generic_handler(
            service,
            {
                method: _handler(getattr(servicer, method), *kinds)
                for method, kinds in _MESSAGES[service].items()
            },
        )
        for service, servicer in servicers.items()
    ]


def _handler(answer: Any, request_kind: Any, response_kind: Any) -> grpc.RpcMethodHandler:
    def read(content: bytes) -> Any:
        try:
            return request_kind.FromString(content)
        except DecodeError:
            return None

    async def answered(request: Any, context: Any) -> Any:
        if request is None:
            async with _told(context):
                raise invalid(f"The bytes are no {request_kind.__name__}")
        return await answer(request, context)

    return grpc.unary_unary_rpc_method_handler(
        answered, request_deserializer=read, response_serializer=response_kind.SerializeToString
    )


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers what models are asked.

    Args:
        manager: of the models.
    """

    def __init__(self, manager: Manager):
        self._manager = manager

    async def Predict(self, request: Any, context: Any) -> Any:
        """Inputs to outputs; one version of the model gives all of them."""
        async with _told(context):
            wanted = _wanted(request)
            with counted(self._manager, wanted.model, "Predict", "GRPC"):
                inputs = {name: _array(name, one) for name, one in request.inputs.items()}
                return _response(wanted.model, await predict(self._manager, wanted, inputs))

    async def GetModelMetadata(self, request: Any, context: Any) -> Any:
        """The signatures of a model."""
        async with _told(context):
            name, version, label = _spec(request)
            if not request.metadata_field:
                raise invalid("GetModelMetadataRequest must specify at least one metadata_field")
            for field in request.metadata_field:
                if field != "signature_def":
                    raise invalid("Metadata field ", field, " is not supported")
            return metadata_response(name, self._manager.find(name, version, label))

    async def Classify(self, request: Any, context: Any) -> Any:
        """Refused: models that predict do not classify."""
        return await self._refused(request, context, "classify")

    async def Regress(self, request: Any, context: Any) -> Any:
        """Refused: models that predict are no regressions."""
        return await self._refused(request, context, "regress")

    async def MultiInference(self, request: Any, context: Any) -> Any:
        """Refused, as its parts would be."""
        async with _told(context):
            raise invalid("MultiInference needs signatures that classify or regress.")

    async def _refused(self, request: Any, context: Any, method: str) -> Any:
        async with _told(context):
            wanted = Wanted(*_spec(request), request.model_spec.signature_name)
            raise not_of_this_kind(self._manager, wanted, method)


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """Says which models there are, and takes others.

    Args:
        manager: of the models.
    """

    def __init__(self, manager: Manager):
        self._manager = manager

    async def GetModelStatus(self, request: Any, context: Any) -> Any:
        """The versions of a model and their states."""
        async with _told(context):
            name, version, _ = _spec(request)
            response = get_model_status_pb2.GetModelStatusResponse()
            states = get_model_status_pb2.ModelVersionStatus.State
            for one in self._manager.states(name, version):
                told = response.model_version_status.add()
                told.version, told.state = one.number, states.Value(one.state)
                if one.error is not None:
                    told.status.error_code = one.error.code.number
                    told.status.error_message = one.error.message
            return response

    async def HandleReloadConfigRequest(self, request: Any, context: Any) -> Any:
        """Serves the models of another configuration."""
        response = model_management_pb2.ReloadConfigResponse()
        async with _told(context):
            try:
                await self._manager.reload(models_of(request.config))
            except ServingError as error:
                # This call answers with a status, and does not fail with it.
                response.status.error_code = error.code.number
                response.status.error_message = error.short
        return response


def _spec(request: Any) -> tuple[str, int | None, str]:
    """The model's name, and the version's number or label."""
    if not request.HasField("model_spec"):
        raise invalid("Missing ModelSpec")
    spec = request.model_spec
    if not spec.name:
        raise invalid("ModelSpec has no name specified.")
    version = spec.version.value if spec.HasField("version") else None
    return spec.name, version, spec.version_label


def _wanted(request: Any) -> Wanted:
    name, version, label = _spec(request)
    return Wanted(
        name, version, label, request.model_spec.signature_name, list(request.output_filter)
    )


def _array(name: str, proto: Any) -> np.ndarray:
    """A tensor of a request, which may hold anything."""
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    # One value may stand for all of them, so that a short message can mean a huge tensor.
    if any(size < 0 for size in sizes) or math.prod(sizes) > _MOST_VALUES:
        raise invalid(f"Tensor proto of input {name} has the shape {sizes}, which is not served")
    try:
        return tf.make_ndarray(proto)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise invalid(f"Tensor proto of input {name} cannot be read: {reason}") from None


def _response(model: str, answer: Any) -> Any:
    response = predict_pb2.PredictResponse()
    response.model_spec.name = model
    response.model_spec.version.value = answer.version
    response.model_spec.signature_name = answer.signature
    for name, tensor in answer.outputs.items():
        response.outputs[name].CopyFrom(tf.make_tensor_proto(tensor))
    return response
