"""The protocol buffers of TensorFlow and its server that Regard needs, defined without TensorFlow.

``protobuf.json`` defines them. Only the field numbers and types matter on the wire; a map is a
repeated message of key and value.
"""

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

_BITS = "half_val"  # the bits of numbers with 16 of them, as integers
_CHUNK = 1 << 16  # values at once: a number of Python takes 32 bytes
# Types by their numbers in TensorFlow: NumPy's name, and the field of a tensor's values.
_TYPES = {
    1: ("float32", "float_val"),
    2: ("float64", "double_val"),
    3: ("int32", "int_val"),
    4: ("uint8", "int_val"),
    5: ("int16", "int_val"),
    6: ("int8", "int_val"),
    7: ("object", "string_val"),
    9: ("int64", "int64_val"),
    10: ("bool", "bool_val"),
    14: ("bfloat16", _BITS),
    17: ("uint16", "int_val"),
    19: ("float16", _BITS),
    22: ("uint32", "uint32_val"),
    23: ("uint64", "uint64_val"),
}
# The states of a version by their numbers.
STATES = {0: "UNKNOWN", 10: "START", 20: "LOADING", 30: "AVAILABLE", 40: "UNLOADING", 50: "END"}
# The HTTP status of each code of gRPC; all others are 500.
HTTP_STATUSES = {
    "OK": 200,
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "ALREADY_EXISTS": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_NUMBERS = {dtype: number for number, (dtype, _) in _TYPES.items()}


def numpy_type(number: int) -> str | None:
    """Return NumPy's name of a type by its number in TensorFlow; texts are objects."""
    return _TYPES[number][0] if number in _TYPES else None


def type_name(kind: int | np.dtype) -> str:
    """Return TensorFlow's name of a type, by its number or NumPy's type."""
    name = kind.name if isinstance(kind, np.dtype) else numpy_type(kind)
    return (name or f"type {kind}").replace("object", "string")


def field_type(number: int) -> str:
    """Return the name of a type as in ``DT_FLOAT``, in lower case."""
    names = {"float16": "half", "float32": "float", "float64": "double"}
    name = type_name(number)
    return names.get(name, name)


@cache
def message_class(name: str) -> Any:
    """Return the class of a message."""
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(_pool().FindMessageTypeByName(f"regard.client.{name}"))


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format

    definitions = Path(__file__).with_name("protobuf.json").read_text(encoding="utf-8")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(json_format.Parse(definitions, descriptor_pb2.FileDescriptorProto()))
    return pool


def write_tensor(tensor: Any, array: np.ndarray) -> None:
    """Write an array to a ``Tensor`` message."""
    tensor.dtype = _NUMBERS[array.dtype.name]
    tensor.tensor_shape.SetInParent()
    for size in array.shape:
        tensor.tensor_shape.dim.add(size=size)
    field = _TYPES[tensor.dtype][1]
    values = np.ascontiguousarray(array).view(np.uint16) if field == _BITS else array
    flat = values.ravel()
    for start in range(0, flat.size, _CHUNK):
        getattr(tensor, field).extend(flat[start : start + _CHUNK].tolist())


def read_tensor(tensor: Any) -> np.ndarray:
    """Return the array of a ``Tensor`` message.

    Raises:
        KeyError: the type is not supported.
        TypeError, ValueError, OverflowError: the values do not fit the type or the shape.
    """
    dtype, field = _TYPES[tensor.dtype]
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype).reshape(shape).copy()
    values = list(getattr(tensor, field))
    # By the protocol the last value stands for those that are missing.
    values += (values[-1:] or [b"" if dtype == "object" else 0]) * (math.prod(shape) - len(values))
    if field == _BITS:
        return np.array(values, np.uint16).view(dtype).reshape(shape)
    return np.array(values, dtype).reshape(shape)
