"""An exported model, loaded and asked: the one place that reads its signatures.

What they take and what their outputs mean stands in the model's contract, a JSON file beside
``saved_model.pb``; so one reader serves every task. Its keys are those of
``models.tasks.served.Served``.

Imports nothing of ours, and TensorFlow only when called, so that the serving check can load it
by its path in an interpreter that sees no package of Regard.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CONTRACT = "assets.extra/contract.json"
IDENTIFIER = "assets.extra/mlmd_uuid"  # of the run that pushed it
# Rows, and what the model answered to them before it was exported.
IN_MEMORY = "assets.extra/in_memory.json"
# What a later training that starts from this model needs beside its weights.
TRAINING = "assets.extra/training.npz"
NEEDED = (
    *("task", "inputs", "answer", "answer_kind", "score", "detail", "scored"),
    *("size", "looks", "cut", "signatures"),
)
# The type and the dimensions of an input, by its kind.
_SPECS = {
    "text": ("string", "[batch]"),
    "image": ("string", "[batch]"),
    "points": ("float32", "[batch, n, 2]"),
    "positions": ("int32", "[batch, n]"),
}
_LENGTH_SPEC = ("int32", "[batch]")
_WITH_LENGTH = ("points", "positions")
_AXES = {1: "[batch]", 2: "[batch, n]", 3: "[batch, n, 2]"}
_REFUSED = re.compile(r"\[(an? \w+ has (?:more|fewer) than .*?\b(?:max_\w+|model\.least))")


class SavedModelError(Exception):
    """The model is not what it should be: a signature or an output is missing or misshapen."""


class SourceRefused(SavedModelError):
    """An input is longer or shorter than the model takes, and it was exported to refuse such."""

    @property
    def too_short(self) -> bool:
        """Whether there was too little of it."""
        return "fewer than" in str(self)


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a model answered to one row.

    Attributes:
        outputs: those of the signature that was asked, by name, without padding: a text is a
            ``str``, texts are lists of them, a number is a ``float`` or an ``int``, and what has
            more dimensions is a NumPy array.
        contract: the model's.
    """

    outputs: Mapping[str, Any]
    contract: Mapping[str, Any] = dataclasses.field(repr=False, compare=False)

    @property
    def hypothesis(self) -> Any:
        """The answer itself: a text, a number, or a list of positions."""
        value = self.outputs[self.contract["answer"]]
        return value.tolist() if self.contract["answer_kind"] == "positions" else value

    @property
    def score(self) -> float | None:
        """The natural logarithm of its probability; None where the model has none."""
        name = self.contract["score"]
        return None if name is None else self.outputs[name]

    @property
    def cut(self) -> int:
        """How much of an input was not read, as far as the signature tells."""
        return int(self.outputs.get(self.contract["cut"], 0))

    def extended(
        self, outputs: Mapping[str, Any], dimensions: Mapping[str, Sequence[str | None]]
    ) -> Answer:
        """This answer with further outputs, and a contract that knows of them.

        Args:
            outputs: by name.
            dimensions: of each, as the contract's signatures tell them.
        """
        detail = self.contract["signatures"][self.contract["detail"]]
        known = {**detail, "outputs": {**detail["outputs"], **dimensions}}
        signatures = {**self.contract["signatures"], self.contract["detail"]: known}
        return Answer({**self.outputs, **outputs}, {**self.contract, "signatures": signatures})


class ServedModel:
    """A loaded SavedModel with its contract; `load` makes one.

    Args:
        loaded: what TensorFlow loaded.
        contract: how to ask it.
    """

    def __init__(self, loaded: Any, contract: Mapping[str, Any]):
        self._loaded = loaded
        self._checked: dict[str, Any] = {}
        self.contract = contract

    def signature(self, name: str) -> Any:
        """A signature, with the inputs and outputs that the contract promises.

        Raises:
            SavedModelError: it is not there, takes something else, or lacks an output.
        """
        if name not in self._checked:
            self._checked[name] = self._check(name)
        return self._checked[name]

    def _check(self, name: str) -> Any:
        there = set(self._loaded.signatures) & set(self.contract["signatures"])
        if name not in there:
            told = ", ".join(sorted(there)) or "none"
            raise SavedModelError(f"there is no signature {name!r} (there are: {told})")
        function = self._loaded.signatures[name]
        given = {
            key: (spec.dtype.name, _AXES.get(spec.shape.ndims, "[?]"))
            for key, spec in function.structured_input_signature[1].items()
        }
        if given != (wanted := self._input_specs(name)):
            raise SavedModelError(f"{name} takes {_told(given)}, and not {_told(wanted)}")
        outputs = function.structured_outputs
        promised = self.contract["signatures"][name]["outputs"]
        missing = [key for key in promised if key not in outputs]
        if missing:
            raise SavedModelError(f"{name} has no output {', '.join(missing)}")
        for key, dimensions in promised.items():
            rank = outputs[key].shape.rank
            # A signature without a batch dimension is told of when it has answered.
            if rank and rank != 1 + len(dimensions):
                raise SavedModelError(
                    f"{name}: output {key} has {rank} dimensions, and not {1 + len(dimensions)}"
                )
        return function

    def _input_specs(self, name: str) -> dict[str, tuple[str, str]]:
        specs = {}
        for entry in self.contract["signatures"][name]["inputs"]:
            specs[entry["name"]] = _SPECS[entry["kind"]]
            if entry["kind"] in _WITH_LENGTH:
                specs[f"{entry['name']}_length"] = _LENGTH_SPEC
        return specs

    def ask(self, name: str, rows: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """The answers of a signature to one request, in order, without their padding.

        Args:
            name: the signature.
            rows: of each, the signature's inputs by name: a text, the bytes of an image file,
                points as ``[n, 2]``, or positions as ``[n]``.

        Raises:
            SourceRefused: an input is too long, or too short.
            SavedModelError: the signature is not as it should be, or an output's first dimension
                is not the batch.
        """
        import tensorflow as tf

        function = self.signature(name)
        request = {
            key: tf.constant(value, tf.string if value.dtype == object else None)
            for key, value in arrays(self.contract["signatures"][name]["inputs"], rows).items()
        }
        try:
            out = {key: value.numpy() for key, value in function(**request).items()}
        except tf.errors.InvalidArgumentError as error:
            refused = _REFUSED.search(error.message)
            if refused is None:
                raise
            raise SourceRefused(refused[1]) from None
        return answers(self.contract, name, out, len(rows))


def load(path: str | os.PathLike[str]) -> ServedModel:
    """Loads a SavedModel; TensorFlow's own errors pass.

    Raises:
        SavedModelError: it has no contract, or one that cannot be read.
    """
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (registers the tokenizer's operations)

    return ServedModel(tf.saved_model.load(os.fspath(path)), read_contract(path))


def read_contract(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The contract of a SavedModel, without loading the model.

    Raises:
        SavedModelError: there is none, or one that cannot be read.
    """
    try:
        text = (Path(path) / CONTRACT).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SavedModelError(
            f"it has no {CONTRACT}, which says how to ask it: it was exported by an older Regard,"
            " or by something else"
        ) from None
    try:
        contract = json.loads(text)
    except ValueError as error:
        raise SavedModelError(f"its {CONTRACT} is no JSON: {error}") from None
    missing = [key for key in NEEDED if key not in contract]
    if missing:
        raise SavedModelError(f"its {CONTRACT} has no {', '.join(missing)}")
    asked = [contract["inputs"], *(one["inputs"] for one in contract["signatures"].values())]
    unknown = {entry["kind"] for entries in asked for entry in entries} - set(_SPECS)
    if unknown:
        raise SavedModelError(f"its {CONTRACT} has inputs of an unknown kind: {sorted(unknown)}")
    return contract


def answers(
    contract: Mapping[str, Any], name: str, outputs: Mapping[str, Any], rows: int
) -> list[Answer]:
    """The outputs of a signature row by row, without their padding.

    Args:
        contract: the model's.
        name: of the signature.
        outputs: NumPy arrays by name.
        rows: how many were asked.

    Raises:
        SavedModelError: an output's first dimension is not the batch.
    """
    for key, value in outputs.items():
        if value.ndim == 0 or value.shape[0] != rows:
            raise SavedModelError(f"output {key} has shape {value.shape} for a batch of {rows}")
    dimensions = contract["signatures"][name]["outputs"]
    return [
        Answer({key: _trimmed(outputs, key, row, dimensions[key]) for key in dimensions}, contract)
        for row in range(rows)
    ]


def arrays(
    entries: Sequence[Mapping[str, str]], rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Rows as the tensors of one request; what has a length is padded, and its length told besides.

    Args:
        entries: the inputs of a signature, by the contract.
        rows: of each, the inputs by name, as in ``ServedModel.ask``.

    Returns:
        NumPy arrays by name; texts and images as objects, which are bytes.
    """
    import numpy as np

    made: dict[str, Any] = {}
    for entry in entries:
        name, (kind, _) = entry["name"], _SPECS[entry["kind"]]
        values = [row[name] for row in rows]
        if entry["kind"] not in _WITH_LENGTH:
            made[name] = np.empty(len(rows), dtype=object)
            made[name][:] = [one.encode() if isinstance(one, str) else one for one in values]
            continue
        inner = (2,) if entry["kind"] == "points" else ()
        several = [np.asarray(value, dtype=kind).reshape(-1, *inner) for value in values]
        lengths = np.array([len(value) for value in several], dtype=np.int32)
        made[name] = np.zeros((len(rows), lengths.max(initial=0), *inner), dtype=kind)
        made[f"{name}_length"] = lengths
        for row, value in enumerate(several):
            made[name][row, : len(value)] = value
    return made


def _trimmed(out: Mapping[str, Any], key: str, row: int, axes: Sequence[str | None]) -> Any:
    """An output of one row: of each dimension as much as is real."""
    value = out[key][row]
    real = tuple(slice(None if name is None else int(out[name][row])) for name in axes)
    if not axes:
        return _text(value) if isinstance(value, bytes) else value.item()
    if out[key].dtype == object:  # text
        return _texts(value[real].tolist())
    # A copy: a view would keep the padded batch in memory.
    return value[real].copy()


def _texts(value: Any) -> Any:
    return [_texts(one) for one in value] if isinstance(value, list) else _text(value)


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")


def _told(specs: Mapping[str, tuple[str, str]]) -> str:
    """Inputs in words: ``source: string[batch]``."""
    return ", ".join(f"{name}: {kind}{axes}" for name, (kind, axes) in specs.items()) or "nothing"


def device() -> str:
    """``GPU`` where TensorFlow would answer on one, else ``CPU``."""
    import tensorflow as tf

    return "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
