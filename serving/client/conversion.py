"""Convert rows to the inputs of a signature, and outputs to rows without padding."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.core.features import Kind
from regard.core.kinds import KINDS
from regard.serving.contract import InputEntry
from regard.serving.saved_model import batch_inputs, tensor_of, unpad

Row = dict[str, Any]  # outputs by name: texts, numbers, lists of texts, arrays
Outputs = Mapping[str, np.ndarray]  # arrays by name, [batch, ...]
# What gRPC calls the types of inputs.
_TYPES = {"string": "string", "float": "float32", "int32": "int32"}
# The outputs with the lengths of the rows and columns of attention weights.
_LENGTH_PAIRS = (
    ("target_length", "source_length"),
    ("first_length", "second_length"),
    ("length", "points_length"),
)
_SELF_ATTENTION = ("source_heads", "target_heads")  # rows and columns are the same tokens
_SAME_LENGTH = {"read_pieces": "target_pieces"}  # decoder inputs are as long as its outputs


class ClientError(Exception):
    """A failed request.

    Attributes:
        code: the name of the gRPC status: ``NOT_FOUND``, ``UNAVAILABLE``, ...
        message: the server's message, or why the server could not be reached.
    """

    def __init__(self, code: str, message: str):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


@dataclass(frozen=True)
class Input:
    """One input or output of a signature.

    Attributes:
        kind: its type (``string``, ``float``, ...).
        rank: its number of dimensions.
        depth: its last dimension; -1 if any.
    """

    kind: str
    rank: int
    depth: int = -1


@dataclass(frozen=True)
class ClientSignature:
    """A signature of a served model.

    Attributes:
        inputs: the inputs by name.
        outputs: the outputs by name.
    """

    inputs: Mapping[str, Input]
    outputs: Mapping[str, Input]

    @property
    def dimensions(self) -> dict[str, list[str | None]]:
        """The length outputs of each output's dimensions, as in a contract."""
        return {
            name: _length_outputs(name, self.outputs, output.rank - 1)
            for name, output in self.outputs.items()
        }

    @property
    def entries(self) -> list[InputEntry]:
        """The inputs in the form of a contract.

        Raises:
            ClientError: an input has a type or rank that Regard does not export.
        """
        entries: list[InputEntry] = []
        for name, declared in self.inputs.items():
            if name.endswith("_length") and name.removesuffix("_length") in self.inputs:
                continue
            kind = _kind_of(declared)
            if kind is None:
                message = f"Input {name} is {declared.kind} of rank {declared.rank}."
                raise ClientError("INVALID_ARGUMENT", message)
            entry: InputEntry = {"name": name, "kind": kind.name}
            if declared.rank == 3 and declared.depth > 2:
                entry["dimensions"] = declared.depth
            entries.append(entry)
        return entries


def _kind_of(declared: Input) -> Kind | None:
    """Return the first kind whose inputs have this type and rank."""
    expected = _TYPES.get(declared.kind), declared.rank
    for kind in KINDS.values():
        if kind.tensor and (kind.tensor[0], _rank(kind)) == expected:
            return kind
    return None


def _rank(kind: Kind) -> int:
    return tensor_of(kind)[1].count(",") + 1


def as_list(values: Iterable[Any], name: str) -> list[Any]:
    """Return the values of an argument that is a list, an array or any other ordered iterable.

    Iterating over a text, a mapping or a table would take its characters, keys or columns for rows.

    Args:
        values: the argument.
        name: its name, for messages.

    Raises:
        TypeError: it is a single value, has no order, or is a table.
    """
    kind = type(values).__name__
    if isinstance(values, str | bytes | bytearray | memoryview | Mapping):
        raise TypeError(f"`{name}` must be a list, not {kind}. For a single row use [row].")
    if isinstance(values, Set):
        raise TypeError(f"`{name}` must be a list, not {kind}, which has no order.")
    if hasattr(values, "columns"):  # of pandas, Polars or Arrow
        raise TypeError(
            f"`{name}` must be a list, not {kind}. Use one of its columns, or a list of mappings: "
            'frame.to_dict("records") in pandas, frame.to_dicts() in Polars, table.to_pylist() in '
            "Arrow."
        )
    if not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise TypeError(f"`{name}` must be a list, not {kind}.")
    return list(values)


def split_requests(
    signature: ClientSignature, rows: Sequence[Any], size: int
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the inputs of requests with at most ``size`` rows.

    Args:
        signature: the signature of the requests.
        rows: mappings of the inputs by name, or the values of a single input.
        size: the maximum number of rows.

    Raises:
        ClientError: the inputs of a row are not those of the signature, or of another type.
    """
    entries = signature.entries
    names = [entry["name"] for entry in entries]
    rows_by_name = [_name_inputs(row, number, names) for number, row in enumerate(rows)]
    for number, row in enumerate(rows_by_name):
        for entry in entries:
            _check_value(entry, row[entry["name"]], number)
    for start in range(0, len(rows_by_name), size):
        yield batch_inputs(entries, rows_by_name[start : start + size])


def _name_inputs(row: Any, number: int, names: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(row, Mapping) and len(names) == 1:
        return {names[0]: row}
    if not isinstance(row, Mapping) or set(row) != set(names):
        message = f"Row {number} is not a mapping with the inputs: {', '.join(names)}."
        raise ClientError("INVALID_ARGUMENT", message)
    return row


def _check_value(entry: InputEntry, value: Any, number: int) -> None:
    """Check the type of an input of a row, which the server may otherwise misread.

    Raises:
        ClientError: a text is neither ``str`` nor ``bytes``, or points are a single point.
    """
    name = entry["name"]
    kind = KINDS[entry["kind"]]
    if not kind.has_length and not isinstance(value, str | bytes):
        message = f"Row {number}: {name} is {type(value).__name__}, not str or bytes."
        raise ClientError("INVALID_ARGUMENT", message)
    rank = _rank(kind) - 1  # without the batch
    if rank == 2 and np.size(value) and np.ndim(value) != rank:
        message = f"Row {number}: {name} is not a list of {kind}. For a single row use [row]."
        raise ClientError("INVALID_ARGUMENT", message)


def split_rows(outputs: Outputs) -> list[Row]:
    """Return the outputs of one request row by row: texts as ``str``, arrays without padding."""
    count = len(next(iter(outputs.values()))) if outputs else 0
    axes = {name: _length_outputs(name, outputs, value.ndim - 1) for name, value in outputs.items()}
    return [
        {name: unpad(outputs, name, row, axes[name]) for name in outputs} for row in range(count)
    ]


def _length_outputs(name: str, outputs: Container[str], dimensions: int) -> list[str | None]:
    """Return for each dimension the output with its real length, if there is one."""
    if dimensions < 1:  # -1 for an output without a batch, or of unknown rank
        return []
    if dimensions == 1:
        return [_length_output(name, outputs)]
    rows, columns = next((pair for pair in _LENGTH_PAIRS if pair[0] in outputs), (None, None))
    if name in _SELF_ATTENTION:
        rows = columns = _length_output(name, outputs)
    # Layers and heads come first and have no padding.
    first = 2 if name.endswith("_heads") and dimensions >= 4 else 0
    lengths: list[str | None] = [None] * dimensions
    lengths[first] = rows
    # With more dimensions the columns are the grid of an image.
    if dimensions == first + 2 and columns in outputs:
        lengths[first + 1] = columns
    return lengths


def _length_output(name: str, outputs: Container[str]) -> str | None:
    """Return the output with the length of this output's side."""
    # "order" has "order_length", "first_weights" has "first_length", others have "length".
    side = _SAME_LENGTH.get(name, name).rpartition("_")[0]
    of_side = f"{side}_length" if side else "length"
    for length in (f"{name}_length", of_side, "length"):
        if length in outputs:
            return length
    return None
