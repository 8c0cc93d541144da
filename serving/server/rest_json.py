"""JSON bodies of the REST API: requests to arrays, outputs and metadata to JSON."""

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from grpc import StatusCode

from regard.serving.server.errors import ServingError, invalid
from regard.serving.server.servable import InputTypes

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64")
_NUMBERS = ("float32", "float64", "bool", *_INTEGERS)
_MAX_DIMENSIONS = 32
_MAX_VALUES = 1 << 20  # each takes up to 64 bytes of memory, for two bytes of the body
_MAX_SHOWN = 100  # characters of a value in an error message


@dataclass(frozen=True)
class PredictBody:
    """The body of a Predict request.

    Attributes:
        signature: the signature's name; "" for the default one.
        inputs: arrays by name.
        is_row_format: whether the body has ``instances`` (rows) rather than ``inputs`` (columns).
    """

    signature: str
    inputs: dict[str, np.ndarray]
    is_row_format: bool


def parse_predict(body: bytes, input_types: Callable[[str], InputTypes]) -> PredictBody:
    """Parse a Predict request.

    Args:
        body: the JSON text.
        input_types: returns the input types of a signature.

    Raises:
        ServingError: the body is not JSON, or does not fit the signature.
    """
    if sum(body.count(character) for character in (b",", b"[", b"{")) > _MAX_VALUES:
        raise invalid(f"The request has more than {_MAX_VALUES} values.")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise invalid(f"The request is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise invalid("The request is not a JSON object.")
    signature = document.get("signature_name", "")
    if not isinstance(signature, str):
        raise invalid("`signature_name` is not a string.")
    if ("instances" in document) == ("inputs" in document):
        raise invalid("The request needs either `instances` or `inputs`.")
    types = input_types(signature)
    is_row_format = "instances" in document
    parse = _parse_rows if is_row_format else _parse_columns
    columns = parse(document["instances" if is_row_format else "inputs"], types)
    inputs = {name: _to_array(columns[name], name, kind) for name, kind in types.items()}
    return PredictBody(signature, inputs, is_row_format)


def dump_predictions(outputs: Mapping[str, np.ndarray], is_row_format: bool) -> list[bytes]:
    """Return outputs as ``{"predictions": [...]}`` by row, or ``{"outputs": ...}`` by column.

    The name of a single output is left out. The text comes in parts: as a whole it can be several
    times as large as the arrays, and orjson stops all other threads while it writes one part.

    Raises:
        ServingError: the outputs cannot be split into rows, or JSON has no such type.
    """
    values = {name: _to_json(name, tensor) for name, tensor in outputs.items()}
    (only, *others) = values.values()
    if not is_row_format:
        if not others:
            return [b'{"outputs":', *_dump_rows(only), b"}"]
        parts = [b'{"outputs":{']
        for i, (name, value) in enumerate(values.items()):
            parts += [b"," if i else b"", dump(name), b":", *_dump_rows(value)]
        return [*parts, b"}}"]
    if len({tensor.shape[0] if tensor.ndim else -1 for tensor in outputs.values()} | {-1}) != 2:
        raise invalid("The outputs have no common first dimension. Use `inputs`, not `instances`.")
    rows = only
    if others:
        rows = (dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True))
    return [b'{"predictions":', *_dump_rows(rows), b"}"]


def _dump_rows(values: Any) -> Iterator[bytes]:
    if not isinstance(values, Iterable) or isinstance(values, str | dict):  # an output of one value
        yield dump(values)
        return
    yield b"["
    for i, row in enumerate(values):
        yield (b"," if i else b"") + dump(row)
    yield b"]"


def dump(value: object) -> bytes:
    """Return a value as JSON; numbers that are not finite become null.

    Raises:
        ServingError: JSON has no such type.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise invalid(f"The outputs cannot be written as JSON: {error}") from None


def _parse_rows(rows: Any, types: InputTypes) -> dict[str, Any]:
    """Return the values of each input."""
    if not isinstance(rows, list) or not rows:
        raise invalid("`instances` is not a list of at least one instance.")
    if not any(map(_is_object, rows)) and len(types) == 1:
        return dict.fromkeys(types, rows)
    for number, row in enumerate(rows):
        if not _is_object(row) or set(row) != set(types):
            names = ", ".join(types)
            raise invalid(f"Instance {number} is not an object with the inputs: {names}.")
    return {name: [row[name] for row in rows] for name in types}


def _parse_columns(columns: Any, types: InputTypes) -> dict[str, Any]:
    if not _is_object(columns) and len(types) == 1:
        return dict.fromkeys(types, columns)
    if not _is_object(columns) or not set(types) <= set(columns):
        raise invalid(f"`inputs` is not an object with the inputs: {', '.join(types)}.")
    return columns


def _is_object(value: Any) -> bool:
    """Whether a value is a JSON object, other than ``{"b64": "..."}`` for binary data."""
    return isinstance(value, dict) and not _is_base64(value)


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("b64"), str)


def _to_array(value: Any, name: str, kind: str) -> np.ndarray:
    """Convert nested lists of one shape to an array of the input's type."""
    values = np.array(value, dtype=object)  # lists of different lengths stay lists
    if values.ndim > _MAX_DIMENSIONS:
        raise invalid(f"Input {name} has more than {_MAX_DIMENSIONS} dimensions.")
    if kind == "string":
        for index, text in enumerate(values.flat):
            values.flat[index] = _to_bytes(text, name)
        return values
    if kind not in _NUMBERS:
        message = f"Input {name}: the REST API does not support the type {kind}. Use gRPC."
        raise ServingError(StatusCode.UNIMPLEMENTED, message)
    dtype = np.dtype(kind)
    allowed = {"b": (bool,), "f": (int, float)}.get(dtype.kind, (int,))
    for number in values.flat:
        if type(number) not in allowed:
            raise invalid(f"Input {name}: {_shorten(number)} is not of the type {kind}.")
    is_in_range = True
    if dtype.kind in "iu" and values.size:
        limits: Any = np.iinfo(dtype.name)
        is_in_range = limits.min <= values.min() and values.max() <= limits.max
    if is_in_range:
        with np.errstate(over="ignore"):
            array = values.astype(dtype)
        if dtype.kind != "f" or np.isfinite(array).all():
            return array
    raise invalid(f"Input {name}: a number is out of the range of {kind}.")


def _to_bytes(value: Any, name: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not _is_base64(value):
        raise invalid(f"Input {name}: {_shorten(value)} is not of the type string.")
    text = value["b64"].translate(str.maketrans("-_", "+/", " \n\r\t"))
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise invalid(f"Input {name}: the value of `b64` is not base64.") from None


def _shorten(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = orjson.dumps(value[:_MAX_SHOWN] if isinstance(value, str) else value).decode()
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def _to_json(name: str, tensor: np.ndarray) -> Any:
    """Convert an output to what orjson writes: numbers as they are, texts as ``str``."""
    if tensor.dtype == object:
        return _decode(tensor.tolist(), is_binary=name.endswith("_bytes"))
    return np.ascontiguousarray(tensor) if tensor.ndim else tensor.item()


def _decode(value: Any, is_binary: bool) -> Any:
    if isinstance(value, list):
        return [_decode(element, is_binary) for element in value]
    raw = value.encode() if isinstance(value, str) else value
    if is_binary:
        return {"b64": base64.b64encode(raw).decode()}
    return raw.decode("utf-8", errors="replace")
