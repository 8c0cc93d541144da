"""One loaded version of a model: what it can be asked, and its answers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from serving import warmup
from serving.local.json_in import Kinds
from serving.local.status import Code, ServingError, invalid

DEFAULT = "serving_default"
_MOST_WARMUPS = 1000
# What TensorFlow adds to the text of an error: where in the graph, and in whose code.
_GRAPH = re.compile(r"\s*\[\[\{\{node [^}]*\}\}.*|\s*\[Op:[^\]]*\]|\s*\[\[[\w/]+\]\]", re.DOTALL)
_TRACE = re.compile(r"^Graph execution error:.*?<stack traces unavailable>\n", re.DOTALL)


class Servable:
    """A SavedModel in memory.

    Args:
        name: of the model.
        version: its number.
        path: the folder.

    Raises:
        ServingError: it is no SavedModel, or one that cannot be loaded.
    """

    def __init__(self, name: str, version: int, path: Path):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  (registers the tokenizer's operations)

        self.name, self.version, self.path = name, version, path
        try:
            self._loaded = tf.saved_model.load(os.fspath(path))
            self.signatures = _signatures(path)
        except (OSError, ValueError, tf.errors.OpError) as error:
            reason = (str(error).splitlines() or ["no reason given"])[0]
            told = f"Could not load version {version} of model {name}: {public(reason, path)}"
            raise ServingError(Code.INTERNAL, told) from None

    def signature(self, name: str) -> Any:
        """A signature's ``SignatureDef``; "" is the default one.

        Raises:
            ServingError: there is none of this name.
        """
        name = name or DEFAULT
        if name not in self.signatures:
            told = f'Serving signature key "{name}" not found.'
            raise ServingError(Code.FAILED_PRECONDITION, told)
        return self.signatures[name]

    def kinds(self, name: str) -> Kinds:
        """The inputs of a signature and their types, as the REST API looks them up.

        Raises:
            ServingError: there is none of this name.
        """
        if (name or DEFAULT) not in self.signatures:
            told = f'Serving signature name: "{name or DEFAULT}" not found in signature def'
            raise invalid(told)
        inputs = self.signature(name).inputs
        return {key: type_name(inputs[key].dtype) for key in sorted(inputs)}

    def check(self, name: str, inputs: Mapping[str, np.ndarray]) -> None:
        """Whether inputs are those of a signature.

        Raises:
            ServingError: one is missing, unknown, or of another type or rank.
        """
        wanted = self.signature(name).inputs
        if len(inputs) != len(wanted):
            extra, missing = set(inputs) - set(wanted), set(wanted) - set(inputs)
            told = f"input size does not match signature: {len(inputs)}!={len(wanted)} len("
            told += f"{_names(inputs)}) != len({_names(wanted)}). Sent extra: {_names(extra)}."
            raise invalid(told, f" Missing but required: {_names(missing)}.")
        for key, tensor in inputs.items():
            if key not in wanted:
                told = f"input tensor alias not found in signature: {key}. Inputs expected to be in"
                raise invalid(told, f" the set {_names(wanted)}.")
            kind, shape = type_name(wanted[key].dtype), wanted[key].tensor_shape
            if _type_of(tensor) != kind:
                told = f"Expects input {key} to be {kind} but {_type_of(tensor)} is provided"
                raise invalid(told)
            sizes = [dim.size for dim in shape.dim]
            fits = len(sizes) == tensor.ndim and all(
                size in (-1, got) for size, got in zip(sizes, tensor.shape, strict=False)
            )
            if not shape.unknown_rank and not fits:
                told = f"Input {key} has the shape {_shape(tensor.shape)}, which is not compatible"
                raise invalid(told, f" with expected shape {_shape(sizes)}")

    def outputs(self, name: str, wanted: Sequence[str]) -> list[str]:
        """The outputs of a signature that are asked for; all, sorted, where none is named.

        Raises:
            ServingError: one is not there, or named twice.
        """
        there = self.signature(name).outputs
        for key in wanted:
            if key not in there:
                told = (
                    f"output tensor alias not found in signature: {key} Outputs expected to be in"
                )
                raise invalid(told, f" the set {_names(there)}.")
        twice = [key for i, key in enumerate(wanted) if key in wanted[:i]]
        if twice:
            raise invalid("duplicate output tensor alias: ", twice[0])
        return list(wanted) or sorted(there)

    def run(self, name: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """All outputs of a signature; what is checked already is not checked again.

        Raises:
            ServingError: the model refuses the inputs, or fails.
        """
        import tensorflow as tf

        function = self._loaded.signatures[name or DEFAULT]
        try:
            tensors = {
                key: tf.constant(value, tf.string if value.dtype == object else None)
                for key, value in inputs.items()
            }
            return {key: value.numpy() for key, value in function(**tensors).items()}
        except tf.errors.OpError as error:
            code = {one.number: one for one in Code}.get(error.error_code, Code.INTERNAL)
            text = _GRAPH.sub("", _TRACE.sub("", error.message)).strip()
            raise ServingError(code, public(text, self.path)) from None
        except (TypeError, ValueError) as error:
            raise invalid(public(str(error), self.path)) from None

    def warm_up(self) -> int:
        """Answers the requests that lie beside the model, and says how many they are.

        Raises:
            ServingError: the file is none of such requests, there are too many, or one fails.
        """
        import tensorflow as tf

        path = self.path / warmup.FILE
        if not path.exists():
            return 0
        try:
            requests = warmup.read(path)
        except (ValueError, tf.errors.OpError) as error:
            told = (
                f"Failed to read warmup data: {public(str(error), self.path)}. Please verify your"
            )
            raise ServingError(
                Code.DATA_LOSS, f"{told} warmup data is in TFRecord format."
            ) from None
        if len(requests) > _MOST_WARMUPS:
            told = (
                f"Number of warmup records exceeds the maximum ({_MOST_WARMUPS}) at {warmup.FILE}"
            )
            raise invalid(told)
        for request in requests:
            inputs = {key: tf.make_ndarray(proto) for key, proto in request.inputs.items()}
            name = request.model_spec.signature_name
            self.check(name, inputs)
            self.run(name, inputs)
        return len(requests)


def _signatures(path: Path) -> dict[str, Any]:
    """The ``SignatureDef`` of each signature, by name."""
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    (graph,) = [one for one in saved.meta_graphs if "serve" in one.meta_info_def.tags]
    return dict(graph.signature_def)


def type_name(number: int) -> str:
    """What TensorFlow calls a type: ``float``, ``string``, ``int32``."""
    from tensorflow.core.framework import types_pb2

    return types_pb2.DataType.Name(number).removeprefix("DT_").lower()


def _type_of(tensor: np.ndarray) -> str:
    if tensor.dtype == object or tensor.dtype.kind in "SU":
        return "string"
    return {"float32": "float", "float64": "double", "float16": "half"}.get(
        tensor.dtype.name, tensor.dtype.name
    )


def _names(names: Any) -> str:
    return "{" + ",".join(sorted(names)) + "}"


def _shape(sizes: Sequence[int]) -> str:
    return "[" + ",".join("?" if size < 0 else str(size) for size in sizes) + "]"


def public(text: str, path: Path) -> str:
    """An error's text without the places of this machine: below ``path``, and ``path`` itself."""
    return text.replace(f"{path}{os.sep}", "").replace(os.fspath(path), path.name)
