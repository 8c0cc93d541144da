"""Run a SavedModel with TensorFlow's C library, without TensorFlow's Python package.

Importing the package takes 3 s of processor time, loading the library 0.3 s. The functions are
those of ``tensorflow/c/c_api.h``, TensorFlow's stable interface. A process that also imports the
package uses the same library, because both load the same file.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import math
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.serving import protobuf
from regard.serving.contract import MODEL_FILE
from regard.serving.protobuf import message_class

INVALID_ARGUMENT, DEADLINE_EXCEEDED = 3, 4  # codes of TensorFlow and of gRPC
_FAILED_PRECONDITION, _UNIMPLEMENTED = 9, 12
# TensorFlow looks for the variables with their path as a pattern, and would not find them.
_ESCAPES = frozenset("[\\")
_STRING, _STRING_BYTES = 7, 24  # the number of the type, and the size of one value
# Options without TensorFlow's graph optimizer (rewrite_options.disable_meta_optimizer): the first
# prediction of a Transformer takes 2.0 s of processor time instead of 4.4 s, later ones as before.
# The functions of a graph have options of their own, with the optimizer.
_NO_OPTIMIZER = bytes.fromhex("52055203980101")
# The same, and functions are inlined (optimizer_options.do_function_inlining), so that there is
# nothing to optimize: loading and three signatures take 2.6 s instead of 9 s. Their later runs are
# 1.15 times (batches) to 1.5 times (single rows) as long.
_INLINE_FUNCTIONS = bytes.fromhex("52091a0220015203980101")
# The first session of a process determines how many threads one operation may use
# (intra_op_parallelism_threads). With one, a single sentence takes half the time, and two batches
# at once are a tenth to a third faster: benchmarks/optimization_log.md.
_THREADS_OF_OPERATION = bytes.fromhex("1001")
_TYPES = {"v": None, "p": c_void_p, "c": c_char_p, "i": c_int, "l": c_int64, "z": c_size_t}
# Functions by the types of their result and their arguments.
_FUNCTIONS = {
    "p": "GetAllOpList NewGraph NewSessionOptions NewStatus",
    "vp": "DeleteBuffer DeleteDeviceList DeleteGraph DeleteSessionOptions DeleteStatus"
    " DeleteTensor StringDealloc StringInit",
    "vpp": "CloseSession DeleteSession",
    "ip": "DeviceListCount GetCode NumDims TensorType",
    "cp": "Message",
    "cpip": "DeviceListType",
    "pp": "StringGetDataPointer TensorData",
    "ppp": "SessionListDevices",
    "zp": "StringGetSize",
    "lpi": "Dim",
    "ppc": "GraphOperationByName",
    "pcp": "LoadLibrary",
    "pppp": "NewSession",
    "vpcz": "StringCopy",
    "vpczp": "SetConfig",
    "pipiz": "AllocateTensor",
    "pppcpippp": "LoadSessionFromSavedModel",
    "vppppippipipp": "SessionRun",
}


class SessionError(Exception):
    """An error of TensorFlow.

    Attributes:
        code: the number of the gRPC status.
        message: TensorFlow's message.
    """

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code, self.message = code, message


class Signature(NamedTuple):
    """The inputs and outputs of a signature: ``TensorInfo`` messages by name."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


class _Buffer(ctypes.Structure):
    _fields_ = (("data", c_char_p), ("length", c_size_t), ("deallocator", c_void_p))


class _Output(ctypes.Structure):
    _fields_ = (("operation", c_void_p), ("index", c_int))


class Session:
    """A loaded SavedModel. Several threads may run it; `close` frees its memory.

    Args:
        path: the SavedModel's folder.
        few_runs: whether there will be few runs; then the first ones are fast, not the later ones.

    Attributes:
        signatures: the signatures by name.
        signature_map: the same as a serialized ``SignatureDefMap``.
        device: ``GPU`` if there is one, else ``CPU``.

    Raises:
        SessionError: TensorFlow cannot load the folder.
    """

    def __init__(self, path: str | os.PathLike[str], few_runs: bool = False):
        if names := " ".join(sorted(_ESCAPES.intersection(os.fspath(path)))):
            message = f"The path contains {names}. Rename the folder, or load it by a link."
            raise SessionError(INVALID_ARGUMENT, message)
        library, tags = _library(), (c_char_p * 1)(b"serve")
        graph, options = library.TF_NewGraph(), library.TF_NewSessionOptions()
        arguments = options, None, os.fsencode(path), tags, 1, graph, None
        try:
            _configure(options, _INLINE_FUNCTIONS if few_runs else _NO_OPTIMIZER)
            session = _call("LoadSessionFromSavedModel", *arguments)
        except SessionError:
            library.TF_DeleteGraph(graph)
            raise
        finally:
            library.TF_DeleteSessionOptions(options)
        self._handle: _Handle | None = _Handle(session, graph)
        self.device = "GPU" if "GPU" in _device_types(session) else "CPU"
        content = (Path(path) / MODEL_FILE).read_bytes()
        graphs = message_class("SavedModel").FromString(content).meta_graphs
        served = next(one for one in graphs if {*one.meta_info_def.tags} == {"serve"})
        entries = served.signature_def
        signatures = message_class("SignatureDefMap")(signature_def=entries)
        self.signature_map: bytes = signatures.SerializeToString()
        self.signatures = {
            entry.key: Signature(_sort(entry.value.inputs), _sort(entry.value.outputs))
            for entry in entries
        }

    def run(
        self, name: str, inputs: Mapping[str, Any], timeout: float = 0.0
    ) -> dict[str, np.ndarray]:
        """Return all outputs of a signature.

        Args:
            name: the signature's name.
            inputs: all its inputs by name: arrays or lists; texts are ``str`` or ``bytes``.
            timeout: cancel the computation after this time, in seconds; 0: no limit.

        Returns:
            Arrays by name; texts are arrays of ``bytes`` objects.

        Raises:
            SessionError: the model rejects the inputs, fails, takes too long, or is closed.
            TypeError, ValueError: an input cannot be converted to its type.
        """
        handle = self._handle  # this reference keeps the session until the end of the run
        if handle is None:
            raise SessionError(_FAILED_PRECONDITION, "The model is closed.")
        try:
            return self._run(handle.session, handle.graph, name, inputs, timeout)
        finally:
            del handle  # the traceback of an error would keep it

    def close(self) -> None:
        """Free the model's memory, once all runs have ended."""
        self._handle = None

    def _run(
        self, session: int, graph: int, name: str, inputs: Mapping[str, Any], timeout: float
    ) -> dict[str, np.ndarray]:
        signature = self.signatures[name]
        content = message_class("RunOptions")(timeout_in_ms=round(1000 * timeout))
        options = content.SerializeToString()
        feeds = _tensors(graph, (signature.inputs[key] for key in inputs))
        fetches = _tensors(graph, signature.outputs.values())
        values, results = (c_void_p * len(feeds))(), (c_void_p * len(fetches))()
        with contextlib.ExitStack() as stack:
            for index, (key, value) in enumerate(inputs.items()):
                values[index] = stack.enter_context(_tensor(value, signature.inputs[key].dtype))
            _call(
                *("SessionRun", session, ctypes.byref(_Buffer(options, len(options)))),
                *(feeds, values, len(feeds), fetches, results, len(fetches), None, 0, None),
            )
            for result in results:
                stack.callback(_library().TF_DeleteTensor, result)
            return dict(zip(signature.outputs, map(_read, results), strict=True))


def operations() -> set[str]:
    """Return the operations that TensorFlow has; those of TensorFlow Text after `initialize`."""
    library = _tensorflow()
    address = library.TF_GetAllOpList()
    start, size = c_void_p.from_address(address).value or 0, _Buffer.from_address(address).length
    content = ctypes.string_at(start, size)
    library.TF_DeleteBuffer(address)
    return {one.name for one in message_class("OpList").FromString(content).op}


def initialize() -> None:
    """Load TensorFlow and find its devices, which prints to the terminal."""
    library = _library()
    graph, options = library.TF_NewGraph(), library.TF_NewSessionOptions()
    _configure(options, b"")
    session = _call("NewSession", graph, options)
    library.TF_DeleteSessionOptions(options)
    _close(session, graph)


def _configure(options: int, content: bytes) -> None:
    """Set a serialized ``ConfigProto``, with the threads of an operation."""
    if "TF_NUM_INTRAOP_THREADS" not in os.environ:
        content += _THREADS_OF_OPERATION
    _call("SetConfig", options, content, len(content))


class _Handle:
    """The library's session and graph, which are freed after the last reference."""

    def __init__(self, session: int, graph: int):
        self.session, self.graph = session, graph
        self.finalizer = weakref.finalize(self, _close, session, graph)
        self.finalizer.atexit = False


def numpy_type(kind: int) -> str:
    """Return the name of NumPy's type by its number in TensorFlow; texts are objects.

    Raises:
        SessionError: the type is not supported.
    """
    name = protobuf.numpy_type(kind)
    if name is None:
        raise SessionError(_UNIMPLEMENTED, f"Tensors of type {kind} are not supported.")
    return name


def _device_types(session: int) -> set[str]:
    library, devices = _library(), _call("SessionListDevices", session)
    count = library.TF_DeviceListCount(devices)
    types = {_call("DeviceListType", devices, index).decode() for index in range(count)}
    library.TF_DeleteDeviceList(devices)
    return types


def _tensors(graph: int, infos: Iterable[Any]) -> Any:
    """Find the tensors of a signature in the graph."""
    find, outputs = _library().TF_GraphOperationByName, []
    for info in infos:
        name, _, index = info.name.partition(":")
        operation = find(graph, name.encode())
        if operation is None:  # the library would crash
            message = f"The model's graph has no tensor {info.name!r}."
            raise SessionError(_FAILED_PRECONDITION, message)
        outputs.append(_Output(operation, int(index or 0)))
    return (_Output * len(outputs))(*outputs)


@cache
def _library() -> Any:
    """Load TensorFlow, and the operations of TensorFlow Text."""
    library = _tensorflow()
    for path in sorted(_package("tensorflow_text").glob("python/ops/*.so")):
        _call("LoadLibrary", os.fsencode(path), library=library)
    return library


@cache
def _tensorflow() -> Any:
    import ml_dtypes  # noqa: F401  (NumPy's bfloat16)

    library = ctypes.CDLL(str(_package("tensorflow") / "libtensorflow_cc.so.2"))
    for types, names in _FUNCTIONS.items():
        for function in (getattr(library, f"TF_{name}") for name in names.split()):
            function.restype, *function.argtypes = (_TYPES[letter] for letter in types)
    return library


def _package(name: str) -> Path:
    """Return the folder of a package without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SessionError(_FAILED_PRECONDITION, f"The package {name} is not installed.")
    return Path(spec.submodule_search_locations[0])


def _call(name: str, *arguments: Any, library: Any = None) -> Any:
    """Call a function whose last argument is a status, and raise its error."""
    library = library or _library()
    status = library.TF_NewStatus()
    try:
        result = getattr(library, f"TF_{name}")(*arguments, status)
        if code := library.TF_GetCode(status):
            raise SessionError(code, library.TF_Message(status).decode("utf-8", "replace"))
        return result
    finally:
        library.TF_DeleteStatus(status)


@contextlib.contextmanager
def _tensor(value: Any, kind: int) -> Iterator[int]:
    """Yield a tensor with the values of an array or a list."""
    library, array = _library(), np.asarray(value, numpy_type(kind), order="C")
    texts = [_encode(text) for text in array.flat] if kind == _STRING else []
    size = _STRING_BYTES * array.size if kind == _STRING else array.nbytes
    shape = (c_int64 * array.ndim)(*array.shape)
    tensor = library.TF_AllocateTensor(kind, shape, array.ndim, size)
    start = library.TF_TensorData(tensor)
    for address, text in zip(_addresses(start, len(texts)), texts, strict=True):
        library.TF_StringInit(address)
        library.TF_StringCopy(address, text, len(text))
    if kind != _STRING and size:
        ctypes.memmove(start, array.ctypes.data, size)
    try:
        yield tensor
    finally:
        for address in _addresses(start, len(texts)):
            library.TF_StringDealloc(address)
        library.TF_DeleteTensor(tensor)


def _read(tensor: int) -> np.ndarray:
    """Return a copy of a tensor's values."""
    library = _library()
    kind, start = library.TF_TensorType(tensor), library.TF_TensorData(tensor)
    dtype = numpy_type(kind)
    shape = [library.TF_Dim(tensor, axis) for axis in range(library.TF_NumDims(tensor))]
    array = np.empty(math.prod(shape), dtype)
    if kind != _STRING:
        ctypes.memmove(array.ctypes.data, start, array.nbytes)
        return array.reshape(shape)
    for index, address in enumerate(_addresses(start, array.size)):
        data, size = library.TF_StringGetDataPointer(address), library.TF_StringGetSize(address)
        array[index] = ctypes.string_at(data, size)
    return array.reshape(shape)


def _addresses(start: int | None, count: int) -> range:
    """Return the addresses of the values of a tensor of texts; an empty one has no address."""
    return range(start or 0, (start or 0) + _STRING_BYTES * count, _STRING_BYTES)


def _encode(text: Any) -> bytes:
    if not isinstance(text, str | bytes):
        raise TypeError(f"A text is expected, not {type(text).__name__}.")
    return text.encode() if isinstance(text, str) else text


def _sort(tensors: Iterable[Any]) -> dict[str, Any]:
    return {one.key: one.value for one in sorted(tensors, key=lambda one: one.key)}


def _close(session: int, graph: int) -> None:
    _call("CloseSession", session)
    _call("DeleteSession", session)
    _library().TF_DeleteGraph(graph)
