"""The protocol buffers of TensorFlow and its server that Regard needs, defined without TensorFlow.

Only the field numbers and types matter on the wire; a map is a repeated message of key and value.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

_SPEC = {"model_spec": (1, "ModelSpec")}
# Name, then number and type of each field; * marks a repeated field.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Dim": {"size": (1, "int64")},
    "Shape": {"dim": (2, "*Dim"), "unknown_rank": (3, "bool")},
    "Tensor": {
        "dtype": (1, "int32"),
        "tensor_shape": (2, "Shape"),
        "tensor_content": (4, "bytes"),
        "float_val": (5, "*float"),
        "double_val": (6, "*double"),
        "int_val": (7, "*int32"),
        "string_val": (8, "*bytes"),
        "int64_val": (10, "*int64"),
        "bool_val": (11, "*bool"),
    },
    "Version": {"value": (1, "int64")},
    "ModelSpec": {
        "name": (1, "string"),
        "version": (2, "Version"),
        "signature_name": (3, "string"),
        "version_label": (4, "string"),
    },
    "TensorEntry": {"key": (1, "string"), "value": (2, "Tensor")},
    "PredictRequest": {**_SPEC, "inputs": (2, "*TensorEntry")},
    "PredictResponse": {"outputs": (1, "*TensorEntry"), "model_spec": (2, "ModelSpec")},
    "TensorInfo": {"name": (1, "string"), "dtype": (2, "int32"), "tensor_shape": (3, "Shape")},
    "InfoEntry": {"key": (1, "string"), "value": (2, "TensorInfo")},
    "SignatureDef": {"inputs": (1, "*InfoEntry"), "outputs": (2, "*InfoEntry")},
    "SignatureEntry": {"key": (1, "string"), "value": (2, "SignatureDef")},
    "SignatureDefMap": {"signature_def": (1, "*SignatureEntry")},
    "MetaInfo": {"tags": (4, "*string")},
    "MetaGraph": {"meta_info_def": (1, "MetaInfo"), "signature_def": (5, "*SignatureEntry")},
    "SavedModel": {"meta_graphs": (2, "*MetaGraph")},
    "RunOptions": {"timeout_in_ms": (2, "int64")},
    "Any": {"type_url": (1, "string"), "value": (2, "bytes")},
    "MetadataEntry": {"key": (1, "string"), "value": (2, "Any")},
    "MetadataRequest": {**_SPEC, "metadata_field": (2, "*string")},
    "MetadataResponse": {**_SPEC, "metadata": (2, "*MetadataEntry")},
    "StatusRequest": _SPEC,
    "VersionStatus": {"version": (1, "int64"), "state": (2, "int32")},
    "StatusResponse": {"model_version_status": (1, "*VersionStatus")},
}
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
    from google.protobuf import descriptor_pb2, descriptor_pool

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="regard/client.proto", package="regard.client", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            kind = kind.removeprefix("*")
            entry = message.field.add(name=field, number=number, label=label)
            if kind in _MESSAGES:
                entry.type, entry.type_name = kinds.TYPE_MESSAGE, f".regard.client.{kind}"
            else:
                entry.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
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
