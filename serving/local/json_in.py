"""The body of a REST request as the inputs of a model."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from serving.local.json_text import decimal, pretty
from serving.local.status import Code, ServingError, invalid

_SHOWN_BYTES = 256
# From where to where a whole number of JSON may be; what is narrower than 32 bits wraps around.
_WHOLE = {
    "int8": (-(2**31), 2**31 - 1),
    "int16": (-(2**31), 2**31 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint8": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
# Up to where whole numbers of a type are exact, and its greatest number.
_DECIMAL = {
    "float": (2**24 - 1, float(np.finfo(np.float32).max)),
    "double": (2**53 - 1, float(np.finfo(np.float64).max)),
}

Kinds = Mapping[str, str]  # the inputs of a signature: TensorFlow's name of each one's type


def predict_request(
    body: bytes, kinds_of: Callable[[str], Kinds]
) -> tuple[str, dict[str, np.ndarray], bool]:
    """A request to predict.

    Args:
        body: JSON; what stands behind its first value is not read.
        kinds_of: gives the inputs of a signature; "" is the default one.

    Returns:
        The name of the signature or "", the inputs, and whether they came row by row.

    Raises:
        ServingError: it is no JSON, or none that fits the signature.
    """
    document = parse(body)
    signature = document.get("signature_name", "")
    if not isinstance(signature, str):
        told = " not formatted correctly. 'signature_name' key must be a string value."
        raise invalid("JSON Value: ", shown(document), told)
    kinds = kinds_of(signature)
    if "instances" in document:
        if "inputs" in document:
            told = " Not formatted correctly expecting only one of 'inputs' or 'instances'"
            raise invalid("JSON Value: ", shown(document), told, " keys to exist ")
        return signature, _by_rows(document, kinds), True
    if "inputs" in document:
        return signature, _by_columns(document["inputs"], kinds), False
    raise invalid("Missing 'inputs' or 'instances' key")


def parse(body: bytes) -> dict[str, Any]:
    """The object that a body begins with.

    Raises:
        ServingError: it begins with something else.
    """
    import rapidjson

    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        told = f"JSON Parse error: Invalid encoding in string. at offset: {error.start}"
        raise invalid(told) from None
    if not text:
        raise invalid("JSON Parse error: The document is empty")
    try:
        found = _parsed(rapidjson, text)
    except RecursionError:
        raise invalid("JSON Parse error: Terminate parsing due to Handler error.") from None
    if not isinstance(found, dict):
        raise invalid("JSON Value: ", shown(found), " Is not object")
    return found


def _parsed(rapidjson: Any, text: str) -> Any:
    for _ in range(2):
        try:
            return rapidjson.loads(text, number_mode=rapidjson.NM_NAN)
        except rapidjson.JSONDecodeError as error:
            # "Parse error at offset 8: The document root must not be followed by other values."
            place, _, reason = str(error).removeprefix("Parse error at offset ").partition(": ")
            if "root must not be followed" not in reason:
                raise invalid(f"JSON Parse error: {reason} at offset: {place}") from None
            text = text.encode()[: int(place)].decode()
    raise AssertionError("a document that was cut at its end has nothing behind it")


def shown(value: Any) -> str:
    """A value for an error's text, as far as it is short."""
    text = decimal(value) if isinstance(value, float) else pretty(value)
    return text[:_SHOWN_BYTES].decode("utf-8", errors="ignore")


def _by_rows(document: Mapping[str, Any], kinds: Kinds) -> dict[str, np.ndarray]:
    rows = document["instances"]
    if not isinstance(rows, list):
        raise invalid("JSON Value: ", shown(document), " Expecting 'instances' to be an list/array")
    if not rows:
        raise invalid("JSON Value: ", shown(document), " No values in 'instances' array")
    if not isinstance(rows[0], dict) and len(kinds) > 1:
        told = "instances is a plain list, but expecting list of objects as multiple input tensors"
        raise invalid(told, " required as per tensorinfo_map")
    columns = {name: _Column(name, kind) for name, kind in kinds.items()}
    named = _is_named(rows[0])
    for number, row in enumerate(rows):
        if named:
            if not _is_named(row):
                raise invalid(f"Expecting object but got list at item {number} of input list")
            _add_named(columns, number, row)
        elif _is_named(row):
            raise invalid(f"Expecting value/list but got object at item {number} of input list")
        else:
            try:
                next(iter(columns.values())).add(row)
            except ServingError as error:
                told = f"Failed to process element: {number} of 'instances' list. Error: {error}"
                raise invalid(told) from None
    return {name: column.tensor() for name, column in columns.items()}


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and not _is_base64(value)


def _is_base64(value: Any) -> bool:
    """``{"b64": "..."}``, binary data."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("b64"), str)


def _add_named(columns: Mapping[str, _Column], number: int, row: Mapping[str, Any]) -> None:
    for name, value in row.items():
        try:
            if name not in columns:
                raise invalid("JSON object: does not have named input: ", name)
            columns[name].add(value)
        except ServingError as error:
            told = f"Failed to process element: {number} key: {name} of 'instances' list."
            raise invalid(told, f" Error: {error}") from None
    if set(row) != set(columns):
        told = f"Failed to process element: {number} of 'instances' list. JSON object: {shown(row)}"
        raise invalid(told, " keys must be equal to: ", ",".join(sorted(columns)))


class _Column:
    """One input, gathered row by row: all rows have one shape."""

    def __init__(self, name: str, kind: str):
        self._name, self._kind = name, kind
        self._values: list[Any] = []
        self._rows = 0
        self._shape: tuple[int, ...] | None = None
        self._size = 0

    def add(self, value: Any) -> None:
        shape = _shape(value)
        before = len(self._values)
        _fill(value, 0, shape, self._kind, self._values)
        size = len(self._values) - before
        if self._shape is None:
            self._shape, self._size = shape, size
        elif size != self._size:
            raise invalid(f"Expecting tensor size: {self._size} but got: {size}")
        elif shape != self._shape:
            wanted, got = (f"[{','.join(map(str, one))}]" for one in (self._shape, shape))
            raise invalid(f"Expecting shape {wanted} but got: {got}")
        self._rows += 1

    def tensor(self) -> np.ndarray:
        return _tensor(self._values, (self._rows, *(self._shape or ())), self._kind)


def _by_columns(inputs: Any, kinds: Kinds) -> dict[str, np.ndarray]:
    if _is_named(inputs):
        found = {}
        for name, kind in kinds.items():
            if name not in inputs:
                raise invalid("Missing named input: ", name, " in 'inputs' object.")
            found[name] = _whole(inputs[name], kind)
        return found
    if len(kinds) > 1:
        told = "inputs is a plain value/list, but expecting an object as multiple input tensors"
        raise invalid(told, " required as per tensorinfo_map")
    return {name: _whole(inputs, kind) for name, kind in kinds.items()}


def _whole(value: Any, kind: str) -> np.ndarray:
    shape = _shape(value)
    values: list[Any] = []
    _fill(value, 0, shape, kind, values)
    return _tensor(values, shape, kind)


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of nested lists, read off the first of each."""
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return tuple(shape)


def _fill(value: Any, level: int, shape: Sequence[int], kind: str, values: list[Any]) -> None:
    """Adds all values of nested lists, which must be of this shape."""
    rank = len(shape)
    if isinstance(value, list):
        if level >= rank:
            raise invalid(f"Encountered list at unexpected level: {level} expected < {rank}")
        if len(value) != shape[level]:
            told = f"Encountered list at unexpected size: {len(value)} at level: {level}"
            raise invalid(told, f" expected size: {shape[level]}")
        for inner in value:
            _fill(inner, level + 1, shape, kind, values)
        return
    if level != rank:
        told = f" found at incorrect level: {level + 1} in the JSON DOM. Expected at level: {rank}"
        raise invalid("JSON Value: ", shown(value), told)
    values.append(_one(value, kind))


def _one(value: Any, kind: str) -> Any:
    """A value as one of a tensor."""
    if kind == "string":
        if isinstance(value, dict):
            return _binary(value)
        if isinstance(value, str):
            return value.encode()
    elif kind in _DECIMAL:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _decimal(value, kind)
    elif kind in _WHOLE:
        low, high = _WHOLE[kind]
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
    elif kind == "bool":
        if isinstance(value, bool):
            return value
    else:
        raise ServingError(
            Code.UNIMPLEMENTED, f"Conversion of JSON Value: {shown(value)} to type: {kind}"
        )
    told = f" Type: {_type_name(value)} is not of expected type: {kind}"
    raise invalid("JSON Value: ", shown(value), told)


def _decimal(value: float, kind: str) -> float:
    exact, most = _DECIMAL[kind]
    if isinstance(value, float) and not math.isfinite(value):
        return value
    # A number that fits in no whole number of C++ is a decimal there.
    whole = isinstance(value, int) and -(2**63) <= value < 2**64
    if abs(value) > (exact if whole else most):
        told = f"Cannot convert JSON value: {shown(value)} to {kind} without loss of precision."
        raise invalid(told)
    return float(value)


def _binary(value: Mapping[str, Any]) -> bytes:
    if not _is_base64(value):
        raise invalid("JSON Value: ", shown(value), " not formatted correctly for base64 data")
    text = value["b64"].translate(str.maketrans("-_", "+/", " \n\r\t"))
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise invalid("Unable to base64 decode") from None


def _type_name(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "Null", True: "True", False: "False"}[value]
    kinds: list[tuple[Any, str]] = [
        (dict, "Object"),
        (list, "Array"),
        (str, "String"),
        ((int, float), "Number"),
    ]
    return next(name for kind, name in kinds if isinstance(value, kind))


def _tensor(values: list[Any], shape: tuple[int, ...], kind: str) -> np.ndarray:
    if kind == "string":
        found = np.empty(len(values), dtype=object)
        found[:] = values
        return found.reshape(shape)
    dtype = {"float": "float32", "double": "float64"}.get(kind, kind)
    # As in C++: an int8 of 300 is 44.
    wide = np.array(values, dtype=np.uint64 if kind == "uint64" else None)
    return wide.astype(dtype).reshape(shape)
