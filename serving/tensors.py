"""Convert between NumPy's arrays and the tensors of TensorFlow's C library."""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Iterator
from ctypes import c_int64
from typing import Any

import ml_dtypes  # noqa: F401  (NumPy's bfloat16)
import numpy as np

from regard.serving import protobuf
from regard.serving.c_api import UNIMPLEMENTED, SessionError, load_library

_STRING = 7  # the number of the type
_STRING_BYTES = 24  # sizeof(TF_TString)


def numpy_type(kind: int) -> str:
    """Return the name of NumPy's type by its number in TensorFlow; texts are objects.

    Raises:
        SessionError: the type is not supported.
    """
    name = protobuf.numpy_type(kind)
    if name is None:
        raise SessionError(UNIMPLEMENTED, f"Tensors of type {kind} are not supported.")
    return name


@contextlib.contextmanager
def create_tensor(value: Any, kind: int) -> Iterator[int]:
    """Yield the address of a tensor with the values of an array or a list, and free it afterwards.

    Args:
        value: the values; texts are ``str`` or ``bytes``.
        kind: the number of the type in TensorFlow.

    Raises:
        SessionError: the type is not supported.
        TypeError, ValueError: the values cannot be converted to it.
    """
    library = load_library()
    array = np.asarray(value, numpy_type(kind), order="C")
    shape = (c_int64 * array.ndim)(*array.shape)
    if kind != _STRING:
        tensor = library.TF_AllocateTensor(kind, shape, array.ndim, array.nbytes)
        if array.nbytes:
            ctypes.memmove(library.TF_TensorData(tensor), array.ctypes.data, array.nbytes)
        try:
            yield tensor
        finally:
            library.TF_DeleteTensor(tensor)
        return
    texts = [_encode(text) for text in array.flat]
    tensor = library.TF_AllocateTensor(kind, shape, array.ndim, _STRING_BYTES * len(texts))
    addresses = _string_addresses(library.TF_TensorData(tensor), len(texts))
    for address, text in zip(addresses, texts, strict=True):
        library.TF_StringInit(address)
        library.TF_StringCopy(address, text, len(text))
    try:
        yield tensor
    finally:
        for address in addresses:
            library.TF_StringDealloc(address)
        library.TF_DeleteTensor(tensor)


def to_array(tensor: int) -> np.ndarray:
    """Return a copy of the values of the tensor at an address; texts are ``bytes`` objects.

    Raises:
        SessionError: the type is not supported.
    """
    library = load_library()
    kind, start = library.TF_TensorType(tensor), library.TF_TensorData(tensor)
    shape = [library.TF_Dim(tensor, axis) for axis in range(library.TF_NumDims(tensor))]
    array = np.empty(math.prod(shape), numpy_type(kind))
    if kind != _STRING:
        ctypes.memmove(array.ctypes.data, start, array.nbytes)
        return array.reshape(shape)
    for index, address in enumerate(_string_addresses(start, array.size)):
        data, size = library.TF_StringGetDataPointer(address), library.TF_StringGetSize(address)
        array[index] = ctypes.string_at(data, size)
    return array.reshape(shape)


def _string_addresses(start: int | None, count: int) -> range:
    """Return the addresses of the values of a tensor of texts; an empty one has no address."""
    first = start or 0
    return range(first, first + _STRING_BYTES * count, _STRING_BYTES)


def _encode(text: Any) -> bytes:
    if not isinstance(text, str | bytes):
        raise TypeError(f"A text is expected, not {type(text).__name__}.")
    return text.encode() if isinstance(text, str) else text
