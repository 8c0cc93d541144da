"""Run a SavedModel with TensorFlow's C library, without TensorFlow's Python package.

Gain over the Python package: loading takes 1.0 instead of 7.2 s of processor time. A sentence takes
8.0 ms instead of 8.4 (``tf.compat.v1.Session``) or 8.8 (``tf.saved_model.load``, whose memory is
never freed): `benchmarks/startup.md`. Delete this module, `c_api` and `tensors` once ``import
tensorflow`` is as fast.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from ctypes import c_char_p, c_void_p
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.core.processor import count_cores
from regard.serving.c_api import (
    DEADLINE_EXCEEDED,
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    Buffer,
    Output,
    SessionError,
    call,
    load_library,
    load_tensorflow,
)
from regard.serving.contract import MODEL_FILE
from regard.serving.protobuf import message_class
from regard.serving.tensors import create_tensor, to_array

__all__ = [
    "DEADLINE_EXCEEDED",
    "INVALID_ARGUMENT",
    "Session",
    "SessionError",
    "Signature",
    "initialize",
    "operations",
]

# TensorFlow looks for the variables with their path as a pattern, and would not find them.
_ESCAPES = frozenset("[\\")
_TAG = "serve"  # of the graph that a model server runs


class Signature(NamedTuple):
    """The inputs and outputs of a signature: ``TensorInfo`` messages by name."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


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
        self._handle: _Handle | None = _load(path, few_runs)
        self.device = "GPU" if "GPU" in _device_types(self._handle.session) else "CPU"
        entries = _read_signatures(Path(path) / MODEL_FILE)
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
            raise SessionError(FAILED_PRECONDITION, "The model is closed.")
        try:
            return _run(handle.session, handle.graph, self.signatures[name], inputs, timeout)
        finally:
            del handle  # the traceback of an error would keep it

    def close(self) -> None:
        """Free the model's memory, once all runs have ended."""
        self._handle = None


class _Handle:
    """The library's session and graph, which are freed after the last reference."""

    def __init__(self, session: int, graph: int):
        self.session, self.graph = session, graph
        self.finalizer = weakref.finalize(self, _close, session, graph)
        self.finalizer.atexit = False


def operations() -> set[str]:
    """Return the operations that TensorFlow has; those of TensorFlow Text after `initialize`."""
    library = load_tensorflow()
    address = library.TF_GetAllOpList()
    buffer = Buffer.from_address(address)
    content = ctypes.string_at(buffer.data, buffer.length)
    library.TF_DeleteBuffer(address)
    return {operation.name for operation in message_class("OpList").FromString(content).op}


def initialize() -> None:
    """Load TensorFlow and find its devices, which prints to the terminal."""
    library = load_library()
    graph, options = library.TF_NewGraph(), library.TF_NewSessionOptions()
    _set_config(options, _new_config())
    session = call("TF_NewSession", graph, options)
    library.TF_DeleteSessionOptions(options)
    _close(session, graph)


def _load(path: str | os.PathLike[str], few_runs: bool) -> _Handle:
    library, tags = load_library(), (c_char_p * 1)(_TAG.encode())
    graph, options = library.TF_NewGraph(), library.TF_NewSessionOptions()
    config = _new_config()
    # Without the optimizer of graphs, loading and the first runs of two signatures take 2.9 instead
    # of 4.6 s (benchmarks/startup.md); later runs do not change. Delete it if they become slower.
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    # The functions of a graph have options of their own, with the optimizer. Inlined, they take 1.3
    # instead of 2.9 s, but later runs up to 1.5 times as long. Delete it with the option above.
    if few_runs:
        config.graph_options.optimizer_options.do_function_inlining = True
    try:
        _set_config(options, config)
        session = call(
            "TF_LoadSessionFromSavedModel",
            options,
            None,
            os.fsencode(path),
            tags,
            len(tags),
            graph,
            None,
        )
    except SessionError:
        library.TF_DeleteGraph(graph)
        raise
    finally:
        library.TF_DeleteSessionOptions(options)
    return _Handle(session, graph)


def _new_config() -> Any:
    """Return a ``ConfigProto`` with the number of threads.

    The first session of a process determines it.
    """
    config = message_class("ConfigProto")()
    # With one thread, a single sentence takes half the time, and two batches at once are a tenth to
    # a third faster (benchmarks/optimization_log.md). Delete it if TensorFlow does so by default.
    if "TF_NUM_INTRAOP_THREADS" not in os.environ:
        config.intra_op_parallelism_threads = 1
    # TensorFlow counts the cores of the machine, and a container may use a few of them.
    if "TF_NUM_INTEROP_THREADS" not in os.environ:
        config.inter_op_parallelism_threads = count_cores()
    return config


def _set_config(options: int, config: Any) -> None:
    content = config.SerializeToString()
    call("TF_SetConfig", options, content, len(content))


def _device_types(session: int) -> set[str]:
    library, devices = load_library(), call("TF_SessionListDevices", session)
    count = library.TF_DeviceListCount(devices)
    types = {call("TF_DeviceListType", devices, index).decode() for index in range(count)}
    library.TF_DeleteDeviceList(devices)
    return types


def _read_signatures(path: Path) -> Any:
    """Return the signatures of the graph for model servers, as messages with key and value."""
    saved_model = message_class("SavedModel").FromString(path.read_bytes())
    for meta_graph in saved_model.meta_graphs:
        if set(meta_graph.meta_info_def.tags) == {_TAG}:
            return meta_graph.signature_def
    raise SessionError(FAILED_PRECONDITION, f"The model has no graph with the tag {_TAG}.")


def _run(
    session: int, graph: int, signature: Signature, inputs: Mapping[str, Any], timeout: float
) -> dict[str, np.ndarray]:
    options = message_class("RunOptions")(timeout_in_ms=round(1000 * timeout))
    run_options = Buffer.of(options.SerializeToString())
    feeds = _find_tensors(graph, (signature.inputs[key] for key in inputs))
    fetches = _find_tensors(graph, signature.outputs.values())
    values, results = (c_void_p * len(feeds))(), (c_void_p * len(fetches))()
    with ExitStack() as stack:
        for index, (key, value) in enumerate(inputs.items()):
            values[index] = stack.enter_context(create_tensor(value, signature.inputs[key].dtype))
        call(
            "TF_SessionRun",
            session,
            ctypes.byref(run_options),
            feeds,
            values,
            len(feeds),
            fetches,
            results,
            len(fetches),
            None,
            0,
            None,
        )
        for result in results:
            stack.callback(load_library().TF_DeleteTensor, result)
        return dict(zip(signature.outputs, map(to_array, results), strict=True))


def _find_tensors(graph: int, infos: Iterable[Any]) -> Any:
    """Return the tensors of a signature in the graph as an array of `Output`."""
    outputs = []
    for info in infos:
        name, _, index = info.name.partition(":")
        operation = load_library().TF_GraphOperationByName(graph, name.encode())
        if operation is None:  # the library would crash
            message = f"The model's graph has no tensor {info.name!r}."
            raise SessionError(FAILED_PRECONDITION, message)
        outputs.append(Output(operation, int(index or 0)))
    return (Output * len(outputs))(*outputs)


def _sort(tensors: Iterable[Any]) -> dict[str, Any]:
    return {entry.key: entry.value for entry in sorted(tensors, key=lambda entry: entry.key)}


def _close(session: int, graph: int) -> None:
    call("TF_CloseSession", session)
    call("TF_DeleteSession", session)
    load_library().TF_DeleteGraph(graph)
