"""The protocol buffers of TensorFlow and its server that Regard needs, defined without TensorFlow.

``protobuf.json`` defines them. Only the field numbers and types matter on the wire; a map is a
repeated message of key and value.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

# The types of exported models: number, NumPy's name, and the field of the values.
_TYPES = {
    "float": (1, "float32", "float_val"),
    "double": (2, "float64", "double_val"),
    "int32": (3, "int32", "int_val"),
    "string": (7, "object", "string_val"),
    "int64": (9, "int64", "int64_val"),
    "bool": (10, "bool", "bool_val"),
}
_NAMES = {number: name for name, (number, _, _) in _TYPES.items()}
_NUMBERS = {dtype: number for number, dtype, _ in _TYPES.values()}


def type_name(number: int) -> str:
    """Return the name of a type by its number in TensorFlow."""
    return _NAMES.get(number, f"type {number}")


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
    if array.dtype == object:
        tensor.string_val.extend(array.ravel().tolist())
    else:
        tensor.tensor_content = np.ascontiguousarray(array).tobytes()


def read_tensor(tensor: Any) -> np.ndarray:
    """Return the array of a ``Tensor`` message."""
    _, dtype, field = _TYPES[_NAMES[tensor.dtype]]
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype).reshape(shape).copy()
    array = np.array(list(getattr(tensor, field)), dtype)
    # By the protocol the last value stands for those that are missing.
    missing = math.prod(shape) - len(array)
    return np.pad(array, (0, missing), "edge" if len(array) else "constant").reshape(shape)
