"""One loaded version of a model: its signatures, input validation and inference."""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from grpc import StatusCode

from regard.serving import warmup_requests
from regard.serving.contract import (
    DEFAULT_SIGNATURE,
    WARMUP,
    SavedModelError,
    read_contract,
)
from regard.serving.protobuf import read_tensor, type_name
from regard.serving.server.errors import ServingError, invalid
from regard.serving.server.sample_row import find_row
from regard.serving.server.tags import TagCheck
from regard.serving.session import DEADLINE_EXCEEDED, Session, SessionError, Signature
from regard.serving.whole_model import IncompleteModelError, check_whole

InputTypes = Mapping[str, str]  # TensorFlow's name of each input's type
_MAX_WARMUP_REQUESTS = 1000
_MAX_FAILURES = 10_000
_SHORT = 0.1  # share of the time limit
# What TensorFlow adds to an error's text: the functions and places in the graph.
_GRAPH_NODE = re.compile(r"\s*\[\[\{\{(?:function_)?node [^}]*\}\}.*|\s*\[\[[\w/]+\]\]", re.DOTALL)
_FUNCTION = re.compile(r"\{\{(?:function_)?node [^}]*\}\}\s*")
_ROOT_ERRORS = re.compile(
    r"\d+ root error\(s\) found\.\s*\(0\) [A-Z_ ]+: (.*?)(?:\s*\(1\) .*)?", re.DOTALL
)
# Errors that the inputs of a request can cause; every other one is the model's or the server's.
_TOO_SLOW = StatusCode.DEADLINE_EXCEEDED
_REJECTIONS = (StatusCode.INVALID_ARGUMENT, StatusCode.OUT_OF_RANGE, _TOO_SLOW)
_CODES = {
    code.value[0]: code
    for code in (*_REJECTIONS, StatusCode.RESOURCE_EXHAUSTED, StatusCode.UNAVAILABLE)
}


class TensorInfo(NamedTuple):
    """What a message declares about a tensor, before its values are read.

    Attributes:
        dtype: the number of the type in TensorFlow's protocol.
        shape: the sizes.
    """

    dtype: int
    shape: tuple[int, ...]


class Servable:
    """A SavedModel in memory.

    Its signatures are the graphs that the Trainer exports: `regard.models.tasks.served_model` and
    the ``served`` module of each task have their code.

    Args:
        name: the model's name.
        path: its folder.

    Raises:
        ServingError: the folder holds no whole SavedModel that TensorFlow can load.
    """

    def __init__(self, name: str, path: Path):
        self.name, self.path = name, path
        self._seconds_per_row = 0.0  # of the slowest run until now
        self._failures = 0
        try:
            check_whole(path)
            self._session = Session(path)
        except IncompleteModelError as error:
            message = f"Version {path.name} of model {name} is not complete: {error}"
            raise ServingError(StatusCode.UNAVAILABLE, message) from None
        except (OSError, SessionError) as error:
            reason = remove_path((str(error).splitlines() or ["no reason given"])[0], path)
            message = f"Could not load version {path.name} of model {name}: {reason}"
            raise ServingError(StatusCode.INTERNAL, message) from None
        self.signatures = self._session.signatures
        self.signature_map = self._session.signature_map
        self._tag_check = _create_tag_check(path)

    def signature(self, name: str) -> Signature:
        """Return a signature; "" is the default signature.

        Raises:
            ServingError: the model has no such signature.
        """
        name = name or DEFAULT_SIGNATURE
        if name not in self.signatures:
            message = f"The model has no signature {name!r}."
            raise ServingError(StatusCode.FAILED_PRECONDITION, message)
        return self.signatures[name]

    def input_types(self, name: str) -> InputTypes:
        """Return the inputs of a signature with their types.

        Raises:
            ServingError: the model has no such signature.
        """
        inputs = self.signature(name).inputs
        return {key: type_name(inputs[key].dtype) for key in sorted(inputs)}

    def validate_inputs(self, name: str, inputs: Mapping[str, np.ndarray | TensorInfo]) -> None:
        """Check the names, types and shapes of a request's inputs, as arrays or as declared.

        Sources of a model with tags must begin with one; TensorFlow Serving does not check this.

        Raises:
            ServingError: an input is missing, unknown, or of another type or shape; a source has no
                tag.
        """
        specs = self.signature(name).inputs
        if set(inputs) != set(specs):
            missing = ", ".join(sorted(set(specs) - set(inputs))) or "none"
            unknown = ", ".join(sorted(set(inputs) - set(specs))) or "none"
            raise invalid(f"Missing inputs: {missing}. Unknown inputs: {unknown}.")
        for key, tensor in inputs.items():
            expected, got = type_name(specs[key].dtype), type_name(tensor.dtype)
            if got != expected:
                raise invalid(f"Input {key} has the type {got}, expected {expected}.")
            shape = specs[key].tensor_shape
            sizes = [dim.size for dim in shape.dim]
            fits = len(sizes) == len(tensor.shape) and all(
                size in (-1, actual) for size, actual in zip(sizes, tensor.shape, strict=False)
            )
            if not shape.unknown_rank and not fits:
                expected = "[" + ", ".join("?" if size < 0 else str(size) for size in sizes) + "]"
                raise invalid(f"Input {key} has the shape {list(tensor.shape)}, not {expected}.")
        if self._tag_check is not None:
            sources = inputs.get(self._tag_check.input_name)
            if isinstance(sources, np.ndarray):
                self._tag_check.run(sources)

    def is_batchable(self, name: str) -> bool:
        """Whether the inputs of a signature may hold the rows of several requests.

        TensorFlow does not compare the shape of an input with the signature: a graph for one row
        can give other outputs for two.
        """
        shapes = [info.tensor_shape for info in self.signature(name).inputs.values()]
        return all(shape.unknown_rank or (shape.dim and shape.dim[0].size < 0) for shape in shapes)

    def select_outputs(self, name: str, requested: Sequence[str]) -> list[str]:
        """Return the outputs to send: the requested ones, or all of them, sorted.

        Raises:
            ServingError: an output does not exist, or is requested twice.
        """
        known = self.signature(name).outputs
        for key in requested:
            if key not in known:
                raise invalid(f"Unknown output {key}. The outputs are: {', '.join(sorted(known))}.")
        if len(set(requested)) != len(requested):
            raise invalid("An output is requested twice.")
        return list(requested) or sorted(known)

    def run(
        self, name: str, inputs: Mapping[str, np.ndarray], timeout: float = 0.0
    ) -> dict[str, np.ndarray]:
        """Return all outputs of a signature for validated inputs.

        Args:
            name: the signature's name; "" is the default signature.
            inputs: arrays by name.
            timeout: cancel the computation after this time, in seconds; 0: no limit.

        Raises:
            ServingError: the model rejects the inputs, fails, or takes too long.
        """
        self.signature(name)
        rows = max((len(value) if value.ndim else 1 for value in inputs.values()), default=1)
        # TensorFlow 2.21 keeps 0.7 KB of each failed run with a time limit for ever (a reference to
        # its rendezvous). After many failures, runs that will be short therefore have no limit.
        is_short = rows * self._seconds_per_row < _SHORT * timeout
        if is_short and self._failures >= _MAX_FAILURES:
            timeout = 0.0
        started = time.monotonic()
        try:
            outputs = self._session.run(name or DEFAULT_SIGNATURE, inputs, timeout)
        except SessionError as error:
            if error.code == DEADLINE_EXCEEDED:
                message = f"The model took more than {timeout:g} s."
                raise ServingError(StatusCode.DEADLINE_EXCEEDED, message) from None
            self._failures += 1
            # Of the model's errors, only these can be due to the inputs.
            code = _CODES.get(error.code, StatusCode.INTERNAL)
            raise ServingError(code, remove_path(_clean(error.message), self.path)) from None
        except (TypeError, ValueError) as error:
            raise invalid(remove_path(str(error), self.path)) from None
        seconds_per_row = (time.monotonic() - started) / max(rows, 1)
        self._seconds_per_row = max(self._seconds_per_row, seconds_per_row)
        return outputs

    def close(self) -> None:
        """Free the model's memory."""
        self._session.close()

    def try_one_row(self, timeout: float = 0.0) -> None:
        """Run the default signature on one row, to find out whether the model can run at all.

        The row is one of the model's own. For a model without any, it is made of the types and
        shapes of the signature; then the model may reject it, but must not fail or take too long.

        Args:
            timeout: limit for the computation, in seconds; 0: no limit.

        Raises:
            ServingError: the model cannot run.
        """
        if DEFAULT_SIGNATURE not in self.signatures:
            return
        row = find_row(self.path, self.signatures[DEFAULT_SIGNATURE])
        if row is None:
            return
        try:
            self.validate_inputs(DEFAULT_SIGNATURE, row.inputs)
            self.run(DEFAULT_SIGNATURE, row.inputs, timeout)
        except ServingError as error:
            is_rejected = error.code in _REJECTIONS and error.code is not _TOO_SLOW
            if row.is_real or not is_rejected:
                message = f"Version {self.path.name} of model {self.name} cannot run: "
                raise ServingError(StatusCode.INTERNAL, message + error.message) from None

    def warm_up(self, only: str | None = None) -> None:
        """Run the warm-up requests of the model.

        Args:
            only: the signature to run; None: all.

        Raises:
            ServingError: the file is unreadable or too long, or a request fails.
        """
        path = self.path / WARMUP
        if not path.exists():
            return
        try:
            requests = warmup_requests.read(path)
        except (OSError, ValueError) as error:
            message = f"Cannot read the warm-up requests: {remove_path(str(error), self.path)}"
            raise ServingError(StatusCode.DATA_LOSS, message) from None
        if len(requests) > _MAX_WARMUP_REQUESTS:
            name = WARMUP
            raise invalid(f"{name} has more than {_MAX_WARMUP_REQUESTS} warm-up requests.")
        for request in requests:
            inputs = {entry.key: read_tensor(entry.value) for entry in request.inputs}
            name = request.model_spec.signature_name or DEFAULT_SIGNATURE
            self.validate_inputs(name, inputs)
            if only in (None, name):
                self.run(name, inputs)


def _clean(message: str) -> str:
    """Return TensorFlow's message without the names of functions and nodes of the graph."""
    if match := _ROOT_ERRORS.fullmatch(message):
        message = match[1]
    return _FUNCTION.sub("", _GRAPH_NODE.sub("", message)).strip()


def _create_tag_check(path: Path) -> TagCheck | None:
    """Return the check of a model's sources; None for a model without tags."""
    try:
        contract = read_contract(path)
    except SavedModelError:  # a model of another program
        return None
    return TagCheck(contract) if contract.get("tags") else None


LoadServable = Callable[[str, Path], Servable]


def remove_path(text: str, path: Path) -> str:
    """Remove the server's own path from a text that a client receives."""
    return text.replace(f"{path}{os.sep}", "").replace(os.fspath(path), path.name)
