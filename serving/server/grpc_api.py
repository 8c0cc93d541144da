"""TensorFlow Serving's gRPC services PredictionService and ModelService."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any

import grpc
import numpy as np
from google.protobuf.message import DecodeError
from grpc import StatusCode

from regard.serving.protobuf import STATES, message_class, numpy_type, read_tensor, write_tensor
from regard.serving.server.admission import SMALL_BYTES, Admission
from regard.serving.server.errors import ServingError, as_serving_error, invalid
from regard.serving.server.grpc_calls import Calls, Error
from regard.serving.server.grpc_gate import ResponseGate
from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import check_roots, parse_models
from regard.serving.server.servable import Servable, TensorInfo
from regard.serving.server.versions import ModelSpec, PredictResult

# The supported methods with their request messages.
SERVICES: dict[str, dict[str, str]] = {
    "tensorflow.serving.PredictionService": {
        "Predict": "PredictRequest",
        "GetModelMetadata": "GetModelMetadataRequest",
    },
    "tensorflow.serving.ModelService": {
        "GetModelStatus": "GetModelStatusRequest",
        "HandleReloadConfigRequest": "ReloadConfigRequest",
    },
}
# When clients may try again: https://github.com/grpc/proposal/blob/master/A6-client-retries.md
_RETRY_KEY = "grpc-retry-pushback-ms"
_STATES = {name: number for number, name in STATES.items()}
# One value may stand for a whole tensor, so that a message of a few bytes can declare a huge one.
_MAX_FILLED_VALUES = 1 << 16
# A field of two bytes can take a hundred in memory.
_MAX_FIELDS = 1 << 16
_MAX_OTHER_BYTES = 1 << 20  # of a message without tensors
# By the protocol, 2 is the number of a request's inputs, of the tensor of an input, of its shape
# and of a size; a tensor's fields 14 and 15 are messages that no input needs.
_NESTED, _MAX_DEPTH, _UNUSED = 2, 3, (14, 15)
# A message that takes longer to arrive needs one of a few places, because gRPC holds what it has of
# it without a limit.
_SLOW_SECONDS, _MAX_SLOW, _MAX_RECEIVE_SECONDS = 0.25, 16, 30.0
# Of calls that need no token. Their messages are small, so they seldom arrive slowly.
_MAX_OTHER_SLOW = 4
# The oldest of them gives way, so that calls without a message do not take all places.
_MAX_ARRIVALS = 256
_TOO_SLOW = "Too many requests arrive slowly. Try again later."


def create_handlers(
    manager: ModelManager, receiver: Receiver, gate: ResponseGate, calls: Calls
) -> list[grpc.GenericRpcHandler]:
    """Return the handlers of both services, which reject bytes that are not a message."""
    methods = _Methods(manager, receiver.admission)
    return [
        grpc.method_handlers_generic_handler(
            service,
            {
                name: _create_handler(getattr(methods, name), message, receiver, gate, calls)
                for name, message in requests.items()
            },
        )
        for service, requests in SERVICES.items()
    ]


def _create_handler(
    method: Callable[[Any], Any],
    request_name: str,
    receiver: Receiver,
    gate: ResponseGate,
    calls: Calls,
) -> grpc.RpcMethodHandler:
    async def respond(context: Any) -> bytes | Error:
        admission = receiver.admission
        try:
            with calls.hold_place(), admission.hold() as hold:
                request = await receiver.receive(request_name, context, hold)
                response = await method(request)
                return await admission.convert(response.ByteSize(), response.SerializeToString)
        except Exception as exception:
            # Only its texts: the traceback, like that of `abort`, would keep the whole message
            # until the next garbage collection.
            error = as_serving_error(exception)
            if error.retry_seconds:
                milliseconds = str(1000 * error.retry_seconds)
                context.set_trailing_metadata(((_RETRY_KEY, milliseconds),))
            return error.code, error.grpc_message

    async def call(_: object, context: Any) -> bytes:
        gate.count_call()
        response = await respond(context)
        await gate.wait()
        return await calls.finish(context, response)

    # For the client a stream of one message is the same; the server decides when to receive it.
    return grpc.stream_unary_rpc_method_handler(call)


class Receiver:
    """Receives the message of a call.

    Calls that need a token share no places with those that anyone can begin.

    Args:
        admission: accepts or rejects requests.
    """

    def __init__(self, admission: Admission):
        self.admission = admission
        self._checked, self._others = _Arrivals(_MAX_SLOW), _Arrivals(_MAX_OTHER_SLOW)

    async def receive(self, request_name: str, context: Any, hold: Callable[[int], None]) -> Any:
        """Return the parsed message.

        Raises:
            ServingError: the token is missing, or the message is invalid, too large or too slow.
        """
        arrivals = self._others
        if request_name in ("PredictRequest", "ReloadConfigRequest"):
            self.admission.check_token(dict(context.invocation_metadata()).get("authorization", ""))
            arrivals = self._checked
        content = await arrivals.receive(context)
        hold(len(content))
        return await self.admission.convert(len(content), _parse, request_name, content)

    async def receive_bytes(self, context: Any) -> bytes:
        """Return the bytes of the message of a call that needs no token.

        Raises:
            ServingError: it takes too long to arrive, or too many others do.
        """
        return await self._others.receive(context)


class _Arrivals:
    """The calls of one kind whose messages have not arrived.

    Args:
        max_slow: how many may take longer than ``_SLOW_SECONDS``.
    """

    def __init__(self, max_slow: int):
        self._max_slow, self._slow = max_slow, 0
        self._arrivals: dict[asyncio.Future[Any], None] = {}  # the oldest first

    async def receive(self, context: Any) -> bytes:
        """Return the bytes of the message.

        Raises:
            ServingError: it takes too long to arrive, or too many others do.
        """
        arrival = asyncio.ensure_future(context.read())
        self._arrivals[arrival] = None
        if len(self._arrivals) > _MAX_ARRIVALS:
            next(iter(self._arrivals)).cancel()
        try:
            await asyncio.wait([arrival], timeout=_SLOW_SECONDS)
        finally:
            del self._arrivals[arrival]
        if arrival.cancelled():
            raise ServingError(StatusCode.UNAVAILABLE, _TOO_SLOW)
        if not arrival.done():
            if self._slow >= self._max_slow:
                arrival.cancel()
                raise ServingError(StatusCode.UNAVAILABLE, _TOO_SLOW)
            self._slow += 1
            try:
                await asyncio.wait([arrival], timeout=_MAX_RECEIVE_SECONDS)
            finally:
                self._slow -= 1
        if not arrival.done():
            arrival.cancel()
            raise ServingError(StatusCode.DEADLINE_EXCEEDED, "The request took too long to arrive.")
        content = arrival.result()
        return b"" if content is grpc.aio.EOF else content


def _parse(request_name: str, content: bytes) -> Any:
    if request_name != "PredictRequest" and len(content) > _MAX_OTHER_BYTES:
        raise invalid(f"A {request_name} may have at most {_MAX_OTHER_BYTES} bytes.")
    try:
        if len(content) > SMALL_BYTES:
            _limit_fields(content)
        return message_class(request_name).FromString(content)
    except (DecodeError, IndexError):
        raise invalid(f"The request is not a valid {request_name}.") from None


def _limit_fields(content: bytes) -> None:
    """Count the fields of a ``PredictRequest`` before its message is built.

    Raises:
        ServingError: there are more than ``_MAX_FIELDS``.
        DecodeError: the bytes are not a message.
        IndexError: the bytes are cut.
    """
    count, messages = 0, [(0, len(content), 0)]
    while messages:
        position, end, depth = messages.pop()
        while position < end:
            tag, position = _read_varint(content, position)
            number, kind = tag >> 3, tag & 7
            size = {0: 0, 1: 8, 5: 4}.get(kind)
            if kind in (0, 2):
                value, position = _read_varint(content, position)
                size = value if kind else 0
            if size is None:
                raise DecodeError
            if kind == 2 and number == _NESTED and depth < _MAX_DEPTH:
                messages.append((position, position + size, depth + 1))
            count += 1 + (size if number in _UNUSED else 0)
            if count > _MAX_FIELDS:
                raise invalid(f"The request has more than {_MAX_FIELDS} fields.")
            position += size


def _read_varint(content: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position
        if shift > 63:
            raise DecodeError


class _Methods:
    """The supported methods of all services.

    Args:
        manager: the models.
        admission: converts large messages.
    """

    def __init__(self, manager: ModelManager, admission: Admission):
        self._manager, self._admission = manager, admission

    async def Predict(self, request: Any) -> Any:
        """Run one version of a model on the given inputs."""
        spec, signature = _parse_spec(request), request.model_spec.signature_name
        with self._manager.track_request(spec.model, "Predict", "GRPC"):
            inputs = await self._read_inputs(request, self._manager.find(spec).loaded, signature)
            prediction = await self._manager.predict(
                spec, signature, inputs, list(request.output_filter)
            )
            size = sum(tensor.nbytes for tensor in prediction.outputs.values())
            return await self._admission.convert(size, _to_response, spec.model, prediction)

    async def _read_inputs(
        self, request: Any, servable: Servable, signature: str
    ) -> dict[str, np.ndarray]:
        # Of an input that is sent several times, the last tensor counts.
        tensors = {entry.key: entry.value for entry in request.inputs}
        declared = {name: _read_info(name, tensor) for name, tensor in tensors.items()}
        servable.validate_inputs(signature, declared)
        count = sum(math.prod(tensor.shape) for tensor in declared.values())
        size = request.ByteSize()
        if count > max(size, _MAX_FILLED_VALUES):
            raise invalid(f"The inputs declare {count} values in a message of {size} bytes.")
        return await self._admission.convert(max(8 * count, size), _to_arrays, tensors)

    async def GetModelMetadata(self, request: Any) -> Any:
        """Return the signatures of a model."""
        spec = _parse_spec(request)
        if set(request.metadata_field) != {"signature_def"}:
            raise invalid("`metadata_field` is not [signature_def].")
        version = self._manager.find(spec)
        response = message_class("GetModelMetadataResponse")()
        response.model_spec.name = spec.model
        response.model_spec.version.value = version.number
        packed = response.metadata.add(key="signature_def").value
        packed.type_url = "type.googleapis.com/tensorflow.serving.SignatureDefMap"
        packed.value = version.loaded.signature_map
        return response

    async def GetModelStatus(self, request: Any) -> Any:
        """Return the versions of a model and their states."""
        response = message_class("GetModelStatusResponse")()
        for version in self._manager.list_states(_parse_spec(request)):
            status = response.model_version_status.add()
            status.version, status.state = version.number, _STATES[version.state]
            if version.error is not None:
                status.status.error_code = version.error.code.value[0]
                status.status.error_message = version.error.message
        return response

    async def HandleReloadConfigRequest(self, request: Any) -> Any:
        """Serve the models of another configuration, if the server allows their folders."""
        response = message_class("ReloadConfigResponse")()
        try:
            models = parse_models(request.config)
            check_roots(models, self._manager.options.reload_roots)
            await self._manager.reload(models)
        except ServingError as error:
            # By the protocol the call succeeds and carries the status in its response.
            response.status.error_code = error.code.value[0]
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
    if numpy_type(proto.dtype) is None:
        raise invalid(f"Input {name} has the unknown type {proto.dtype}.")
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in shape):
        raise invalid(f"Input {name} has the incomplete shape {list(shape)}.")
    return TensorInfo(proto.dtype, shape)


def _to_response(model: str, prediction: PredictResult) -> Any:
    response = message_class("PredictResponse")()
    response.model_spec.name = model
    response.model_spec.version.value = prediction.version
    response.model_spec.signature_name = prediction.signature
    for name, tensor in prediction.outputs.items():
        write_tensor(response.outputs.add(key=name).value, tensor)
    return response


def _to_arrays(tensors: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: _to_array(name, tensor) for name, tensor in tensors.items()}


def _to_array(name: str, proto: Any) -> np.ndarray:
    """Convert a ``TensorProto`` that fits the signature."""
    try:
        return read_tensor(proto)
    except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise invalid(f"Input {name} is not a valid tensor: {reason}") from None
