"""Load an exported model and run its signatures, as its contract describes them."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from regard.core.features import Kind
from regard.core.kinds import KINDS
from regard.core.processor import count_cores
from regard.serving.contract import (
    DEFAULT_SIGNATURE,
    LENGTH_SPEC,
    Contract,
    InputEntry,
    SavedModelError,
    SignatureEntry,
    read_contract,
)
from regard.serving.protobuf import type_name
from regard.serving.session import Session, SessionError, Signature

_MIN_ROWS = 16  # of a batch that is divided among the cores
_SHAPES = {1: "[batch]", 2: "[batch, n]", 3: "[batch, n, dimensions]"}
_LENGTH_MESSAGE = re.compile(
    r"\[(an? \w+ has (?:(?:more|fewer) than .*?\b(?:max_\w+|model\.\w+)|unknown characters))"
)
InputRow = Mapping[str, Any]  # a text, an image's bytes, points or positions by input name


class InputLengthError(SavedModelError):
    """An input is too long or too short for a model that was exported to reject such inputs."""

    @classmethod
    def parse(cls, message: str) -> InputLengthError | None:
        """Return the error that TensorFlow's message is about; None for another error."""
        match = _LENGTH_MESSAGE.search(message)
        return cls(match[1]) if match else None


@dataclasses.dataclass(frozen=True, repr=False)
class Prediction:
    """The outputs of a model for one row.

    Attributes:
        outputs: the outputs of one signature by name, without padding: a text is a ``str``, texts
            are lists of them, a number is a ``float`` or an ``int``, everything else an array.
        contract: the model's contract.
        hypotheses: the n best outputs or samples, if several were requested; this is the first.
    """

    outputs: Mapping[str, Any]
    contract: Contract = dataclasses.field(compare=False)
    hypotheses: Sequence[Prediction] = ()

    def __repr__(self) -> str:
        facts = [repr(self.hypothesis)] if self.contract["answer"] in self.outputs else []
        score = self.outputs.get(self.contract["score"] or "")
        facts += [] if score is None else [f"score={score:.6g}"]
        return f"Prediction({', '.join(facts)})"

    @property
    def hypothesis(self) -> Any:
        """The predicted text, number, or list of positions."""
        value = self.outputs[self.contract["answer"]]
        return value.tolist() if isinstance(value, np.ndarray) else value

    @property
    def score(self) -> float | None:
        """The log-probability (natural logarithm) of the hypothesis; None if there is none."""
        name = self.contract["score"]
        return None if name is None or math.isnan(self.outputs[name]) else self.outputs[name]

    @property
    def confidence(self) -> float | None:
        """The probability that the hypothesis is good; None if there is none."""
        entry = self.contract.get("confidence")
        value = self.outputs.get(entry["output"]) if entry else None
        return None if value is None or math.isnan(value) else value

    @property
    def attention(self) -> tuple[Any, Any, np.ndarray] | None:
        """The tokens of the output and of the input, and the weights ``[output, input]``.

        None without attention in the outputs. An image or points have no tokens, but None.
        """
        entry = self.contract["looks"]
        if entry is None or entry["weights"] not in self.outputs:
            return None
        rows, columns = self.outputs.get(entry["rows"]), self.outputs.get(entry["columns"])
        return rows, columns, self.outputs[entry["weights"]]

    @property
    def truncated(self) -> int:
        """How many tokens of the input were cut off, at least, if the signature reports it."""
        name = self.contract["cut"]
        return 0 if name is None else int(self.outputs.get(name, 0))

    def with_outputs(
        self, outputs: Mapping[str, Any], dimensions: Mapping[str, Sequence[str | None]]
    ) -> Prediction:
        """Return this prediction with further outputs, which its contract also describes.

        Args:
            outputs: values by name.
            dimensions: for each output the length outputs of its dimensions.
        """
        name, signatures = self.contract["detail"], self.contract["signatures"]
        described = {**signatures[name]["outputs"], **dimensions}
        detail: SignatureEntry = {**signatures[name], "outputs": described}
        contract: Contract = {**self.contract, "signatures": {**signatures, name: detail}}
        return Prediction({**self.outputs, **outputs}, contract)


class Model(Protocol):
    """What runs the signatures of a model: a `ServedModel`, or a client of a server."""

    contract: Contract

    def predict(self, name: str, rows: Sequence[InputRow]) -> list[Prediction]:
        """Return the outputs of a signature row by row, without padding."""
        ...


class ServedModel:
    """A loaded SavedModel; see `load`.

    Args:
        session: the model in memory.
        contract: its contract.

    Attributes:
        device: ``CPU`` or ``GPU``.
    """

    def __init__(self, session: Session, contract: Contract):
        self._session, self.device = session, session.device
        self._signatures: dict[str, Signature] = {}
        self.contract = contract

    def __repr__(self) -> str:
        return f"{type(self).__name__}(task={self.contract['task']!r}, device={self.device!r})"

    def signature(self, name: str) -> Signature:
        """Return a signature after comparing it with the contract.

        Raises:
            SavedModelError: it does not exist, or its inputs or outputs differ.
        """
        if name not in self._signatures:
            self._signatures[name] = self._validate(name)
        return self._signatures[name]

    def _validate(self, name: str) -> Signature:
        known = set(self._session.signatures) & set(self.contract["signatures"])
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise SavedModelError(f"There is no signature {name!r}. The signatures are: {names}.")
        signature = self._session.signatures[name]
        actual = {
            key: (type_name(info.dtype), _SHAPES.get(_rank(info) or 0, "[?]"))
            for key, info in signature.inputs.items()
        }
        if actual != (expected := self._input_specs(name)):
            raise SavedModelError(
                f"{name} has the inputs {_format_specs(actual)}; expected {_format_specs(expected)}"
            )
        dimensions = self.contract["signatures"][name]["outputs"]
        if missing := [key for key in dimensions if key not in signature.outputs]:
            raise SavedModelError(f"{name} has no output {', '.join(missing)}")
        for key, axes in dimensions.items():
            rank = _rank(signature.outputs[key])
            # `split_outputs` reports an output without a batch dimension.
            if rank and rank != 1 + len(axes):
                raise SavedModelError(
                    f"{name}: output {key} has {rank} dimensions; expected {1 + len(axes)}"
                )
        return signature

    def _input_specs(self, name: str) -> dict[str, tuple[str, str]]:
        specs = {}
        for entry in self.contract["signatures"][name]["inputs"]:
            kind = KINDS[entry["kind"]]
            specs[entry["name"]] = tensor_of(kind)
            if kind.has_length:
                specs[f"{entry['name']}_length"] = LENGTH_SPEC
        return specs

    def predict(self, name: str, rows: Sequence[InputRow]) -> list[Prediction]:
        """Run a signature on one batch, and return the outputs row by row without padding.

        On a CPU, many rows are divided among the cores: two batches of half the size on one core
        each are 1.4 times as fast as one batch on two cores.

        Args:
            name: the signature's name.
            rows: the signature's inputs by name: a text, the bytes of an image file, points as
                ``[n, 2]``, or positions as ``[n]``.

        Raises:
            InputLengthError: an input is too long or too short.
            SavedModelError: the signature does not fit the contract.
        """
        self.signature(name)

        def predict_part(rows: Sequence[InputRow]) -> list[Prediction]:
            inputs = batch_inputs(self.contract["signatures"][name]["inputs"], rows)
            return split_outputs(self.contract, name, self.run(name, inputs), len(rows))

        cores = count_cores() if self.device == "CPU" else 1
        size = max(-(-len(rows) // cores), _MIN_ROWS)
        parts = [rows[first : first + size] for first in range(0, len(rows), size)]
        if len(parts) < 2:
            return predict_part(rows)
        with ThreadPoolExecutor(len(parts)) as pool:
            return list(itertools.chain.from_iterable(pool.map(predict_part, parts)))

    def run(self, name: str, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the padded outputs of a signature.

        Args:
            name: the signature's name.
            inputs: arrays by name.

        Raises:
            InputLengthError: an input is too long or too short.
            SavedModelError: the signature does not fit the contract.
            SessionError: TensorFlow rejects the inputs or fails.
        """
        self.signature(name)
        try:
            return self._session.run(name, inputs)
        except SessionError as error:
            raise InputLengthError.parse(error.message) or error from None


def load(path: str | os.PathLike[str], few_runs: bool = False) -> ServedModel:
    """Load a SavedModel and its contract; see `Session`.

    Raises:
        SavedModelError: the contract is missing or invalid.
        SessionError: TensorFlow cannot load the model.
    """
    return ServedModel(Session(path, few_runs), read_contract(path))


def splits_sentences(contract: Contract) -> bool:
    """Return whether ``serving_default`` splits long sources, which other signatures truncate."""
    return "sentences" in contract["signatures"][DEFAULT_SIGNATURE]["outputs"]


def predict_in_detail(model: Model, rows: Sequence[InputRow]) -> list[Prediction]:
    """Run the detail signature, and ``serving_default`` on sources that only this one splits.

    Of those sources, the output, its score and the number of truncated tokens are those of
    ``serving_default``; tokens and attention are those of the truncated source.
    """
    predictions = model.predict(model.contract["detail"], rows)
    long = [row for row, prediction in enumerate(predictions) if prediction.truncated]
    if long and splits_sentences(model.contract):
        split = model.predict(DEFAULT_SIGNATURE, [rows[row] for row in long])
        for row, whole in zip(long, split, strict=True):
            outputs = predictions[row].outputs
            outputs = {name: whole.outputs.get(name, value) for name, value in outputs.items()}
            predictions[row] = Prediction(outputs, model.contract)
    return predictions


def split_outputs(
    contract: Contract, name: str, outputs: Mapping[str, np.ndarray], rows: int
) -> list[Prediction]:
    """Split the outputs of a batch into rows without padding.

    Args:
        contract: the model's contract.
        name: the signature's name.
        outputs: arrays by name, ``[batch, ...]``.
        rows: the size of the batch.

    Raises:
        SavedModelError: the first dimension of an output is not the batch.
    """
    for key, value in outputs.items():
        if value.ndim == 0 or value.shape[0] != rows:
            raise SavedModelError(f"output {key} has shape {value.shape} for a batch of {rows}")
    dimensions = contract["signatures"][name]["outputs"]
    return [
        Prediction(
            {key: unpad(outputs, key, row, axes) for key, axes in dimensions.items()}, contract
        )
        for row in range(rows)
    ]


def batch_inputs(entries: Sequence[InputEntry], rows: Sequence[InputRow]) -> dict[str, np.ndarray]:
    """Convert rows to the arrays of one request; inputs with a length are padded with zeros.

    Args:
        entries: the inputs of a signature, from the contract.
        rows: values by input name, as in ``ServedModel.predict``.

    Returns:
        Arrays by name; texts and images are arrays of ``bytes`` objects.
    """
    arrays: dict[str, np.ndarray] = {}
    for entry in entries:
        name, kind = entry["name"], KINDS[entry["kind"]]
        values = [row[name] for row in rows]
        if not kind.has_length:
            arrays[name] = np.empty(len(rows), dtype=object)
            arrays[name][:] = [_encode_text(value) for value in values]
            continue
        dtype, shape = tensor_of(kind)
        inner = (entry.get("dimensions", 2),) if "dimensions" in shape else ()
        sequences = [np.asarray(value, dtype=dtype).reshape(-1, *inner) for value in values]
        lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int32)
        arrays[name] = np.zeros((len(rows), lengths.max(initial=0), *inner), dtype=dtype)
        arrays[f"{name}_length"] = lengths
        for row, sequence in enumerate(sequences):
            arrays[name][row, : len(sequence)] = sequence
    return arrays


def tensor_of(kind: Kind) -> tuple[str, str]:
    """Return the type and the shape of an input.

    Raises:
        SavedModelError: a model has no inputs of this kind.
    """
    if kind.tensor is None:
        raise SavedModelError(f"A model has no inputs of the kind {kind}.")
    return kind.tensor


def unpad(outputs: Mapping[str, np.ndarray], key: str, row: int, axes: Sequence[str | None]) -> Any:
    """Return an output of one row, with each dimension cut to its real length."""
    value = outputs[key][row]
    lengths = tuple(slice(None if name is None else int(outputs[name][row])) for name in axes)
    if not axes:
        return value.item() if isinstance(value, np.generic) else decode_texts(value)
    if outputs[key].dtype == object:
        return decode_texts(value[lengths].tolist())
    # A copy: a view would keep the padded batch in memory.
    return value[lengths].copy()


def decode_texts(value: Any) -> Any:
    """Decode bytes in nested lists; other values stay as they are."""
    if isinstance(value, list):
        return [decode_texts(element) for element in value]
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value


def _encode_text(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _rank(info: Any) -> int | None:
    return None if info.tensor_shape.unknown_rank else len(info.tensor_shape.dim)


def _format_specs(specs: Mapping[str, tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {dtype}{shape}" for name, (dtype, shape) in specs.items()) or "none"
