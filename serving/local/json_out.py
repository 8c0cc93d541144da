"""The outputs of a model as the body of a REST answer."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from serving.local.json_text import Writer, decimal, pretty, string
from serving.local.status import invalid

_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64")


def by_rows(outputs: Mapping[str, np.ndarray]) -> bytes:
    """``{"predictions": [...]}``: an element a row, an object where there are several outputs.

    Raises:
        ServingError: an output has no rows, or not as many as another.
    """
    rows = -1
    for name, tensor in outputs.items():
        if not tensor.ndim:
            raise invalid("Tensor name: ", name, " has no shape information ")
        if rows >= 0 and len(tensor) != rows:
            told = f" has inconsistent batch size: {len(tensor)} expecting: {rows}"
            raise invalid("Tensor name: ", name, told)
        rows = len(tensor)
    writer = Writer()
    writer.start(array=False)
    writer.key("predictions")
    writer.start(array=True)
    for row in range(rows):
        if len(outputs) > 1:
            writer.start(array=False)
        writer.single_line = True
        for name, tensor in outputs.items():
            if len(outputs) > 1:
                writer.key(name)
            _write(writer, tensor[row], _as_bytes(name, tensor))
        writer.single_line = False
        if len(outputs) > 1:
            writer.end()
    writer.end()
    writer.end()
    return writer.finish()


def by_columns(outputs: Mapping[str, np.ndarray]) -> bytes:
    """``{"outputs": ...}``: whole tensors, an object of them where there are several."""
    writer = Writer()
    writer.start(array=False)
    writer.key("outputs")
    if len(outputs) > 1:
        writer.start(array=False)
    for name, tensor in outputs.items():
        if len(outputs) > 1:
            writer.key(name)
        _write(writer, tensor, _as_bytes(name, tensor))
    if len(outputs) > 1:
        writer.end()
    writer.end()
    return writer.finish()


def error(message: str) -> bytes:
    """The body of an answer that is an error."""
    return pretty({"error": message})


def _as_bytes(name: str, tensor: np.ndarray) -> bool:
    """Whether strings are binary data, which the name of an output tells."""
    return tensor.dtype == object and name.endswith("_bytes")


def _write(writer: Writer, value: Any, as_bytes: bool) -> None:
    if isinstance(value, np.ndarray) and value.ndim:
        writer.start(array=True)
        for inner in value:
            _write(writer, inner, as_bytes)
        writer.end()
        return
    value = value[()] if isinstance(value, np.ndarray) else value
    if isinstance(value, (bytes, str)):
        if as_bytes:
            raw = value.encode() if isinstance(value, str) else value
            writer.plain({"b64": base64.b64encode(raw)})
        else:
            writer.value(string(value))
    elif isinstance(value, (bool, np.bool_)):
        writer.value(b"true" if value else b"false")
    elif isinstance(value, (np.float32, np.float64)):
        writer.value(decimal(value))
    elif value.dtype.name in _WHOLE:
        writer.value(str(int(value)).encode())
    else:
        kind = {"float16": "half"}.get(value.dtype.name, value.dtype.name)
        raise invalid("Failed to write JSON value for tensor type: ", kind)
