"""TensorFlow's C interface: the functions of ``tensorflow/c/c_api.h`` that a `Session` calls.

The interface is stable: a release adds functions, and changes none. A process that also imports
TensorFlow's Python package uses the same library, because both load the same file.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Mapping
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

INVALID_ARGUMENT, DEADLINE_EXCEEDED = 3, 4  # codes of TensorFlow and of gRPC
FAILED_PRECONDITION, UNIMPLEMENTED = 9, 12


class SessionError(Exception):
    """An error of TensorFlow.

    Attributes:
        code: the number of the gRPC status.
        message: TensorFlow's message.
    """

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code, self.message = code, message


class Buffer(ctypes.Structure):
    """``TF_Buffer``: a serialized message."""

    content: bytes
    _fields_ = (("data", c_void_p), ("length", c_size_t), ("data_deallocator", c_void_p))

    @classmethod
    def of(cls, content: bytes) -> Buffer:
        """Return a buffer with the given bytes."""
        buffer = cls(ctypes.cast(c_char_p(content), c_void_p), len(content))
        buffer.content = content  # the bytes exist as long as the buffer
        return buffer


class Output(ctypes.Structure):
    """``TF_Output``: one of the tensors that an operation of a graph computes."""

    _fields_ = (("oper", c_void_p), ("index", c_int))


# The library owns its objects, and passes their addresses.
_Address = c_void_p
_BufferAddress = _DeviceList = _Graph = _Operation = _Options = _Session = _Address
_Status = _String = _Tensor = _Library = _Address
_Array = _Address  # the address of the first element
# The type of each function's result, and those of its arguments.
_FUNCTIONS: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "TF_NewStatus": (_Status, ()),
    "TF_GetCode": (c_int, (_Status,)),
    "TF_Message": (c_char_p, (_Status,)),
    "TF_DeleteStatus": (None, (_Status,)),
    "TF_LoadLibrary": (_Library, (c_char_p, _Status)),
    "TF_GetAllOpList": (_BufferAddress, ()),
    "TF_DeleteBuffer": (None, (_BufferAddress,)),
    "TF_NewGraph": (_Graph, ()),
    "TF_GraphOperationByName": (_Operation, (_Graph, c_char_p)),
    "TF_DeleteGraph": (None, (_Graph,)),
    "TF_NewSessionOptions": (_Options, ()),
    # Options; a serialized ConfigProto and its size.
    "TF_SetConfig": (None, (_Options, _Array, c_size_t, _Status)),
    "TF_DeleteSessionOptions": (None, (_Options,)),
    "TF_NewSession": (_Session, (_Graph, _Options, _Status)),
    # Options, RunOptions, the folder, tags and their number, the graph to fill, a MetaGraphDef.
    "TF_LoadSessionFromSavedModel": (
        _Session,
        (_Options, _BufferAddress, c_char_p, _Array, c_int, _Graph, _BufferAddress, _Status),
    ),
    # Session and RunOptions; inputs, their tensors and number; outputs, their tensors and number;
    # operations without outputs and their number; RunMetadata.
    "TF_SessionRun": (
        None,
        (
            _Session,
            _BufferAddress,
            _Array,
            _Array,
            c_int,
            _Array,
            _Array,
            c_int,
            _Array,
            c_int,
            _BufferAddress,
            _Status,
        ),
    ),
    "TF_CloseSession": (None, (_Session, _Status)),
    "TF_DeleteSession": (None, (_Session, _Status)),
    "TF_SessionListDevices": (_DeviceList, (_Session, _Status)),
    "TF_DeviceListCount": (c_int, (_DeviceList,)),
    "TF_DeviceListType": (c_char_p, (_DeviceList, c_int, _Status)),
    "TF_DeleteDeviceList": (None, (_DeviceList,)),
    # Type, sizes and their number, bytes.
    "TF_AllocateTensor": (_Tensor, (c_int, _Array, c_int, c_size_t)),
    "TF_TensorType": (c_int, (_Tensor,)),
    "TF_NumDims": (c_int, (_Tensor,)),
    "TF_Dim": (c_int64, (_Tensor, c_int)),
    "TF_TensorData": (_Array, (_Tensor,)),
    "TF_DeleteTensor": (None, (_Tensor,)),
    "TF_StringInit": (None, (_String,)),
    "TF_StringCopy": (None, (_String, c_char_p, c_size_t)),
    "TF_StringGetDataPointer": (_Array, (_String,)),
    "TF_StringGetSize": (c_size_t, (_String,)),
    "TF_StringDealloc": (None, (_String,)),
}


def call(name: str, *arguments: Any, library: Any = None) -> Any:
    """Call a function whose last argument is a status.

    Args:
        name: the function's name, for example ``TF_NewSession``.
        arguments: its arguments without the status.
        library: the library; None: TensorFlow with the operations of TensorFlow Text.

    Raises:
        SessionError: the status is an error.
    """
    library = library or load_library()
    status = library.TF_NewStatus()
    try:
        result = getattr(library, name)(*arguments, status)
        if code := library.TF_GetCode(status):
            raise SessionError(code, library.TF_Message(status).decode("utf-8", "replace"))
        return result
    finally:
        library.TF_DeleteStatus(status)


@cache
def load_library() -> Any:
    """Load TensorFlow, and the operations of TensorFlow Text.

    Raises:
        SessionError: a package is not installed.
    """
    library = load_tensorflow()
    for path in sorted(find_package("tensorflow_text").glob("python/ops/*.so")):
        call("TF_LoadLibrary", os.fsencode(path), library=library)
    return library


@cache
def load_tensorflow() -> Any:
    """Load TensorFlow without TensorFlow Text.

    Raises:
        SessionError: TensorFlow is not installed.
    """
    library = ctypes.CDLL(str(find_package("tensorflow") / "libtensorflow_cc.so.2"))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def find_package(name: str) -> Path:
    """Return the folder of a package without importing it.

    Raises:
        SessionError: the package is not installed.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SessionError(FAILED_PRECONDITION, f"The package {name} is not installed.")
    return Path(spec.submodule_search_locations[0])
