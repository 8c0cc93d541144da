"""What a server answered: rows without their padding, or an error with its code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

# A row's outputs by name: texts, numbers, lists of texts, arrays.
Row = dict[str, Any]

# Which outputs say how much of the others' dimensions is real, in what Regard exports: of the rows
# and of the columns.
_PAIRS = (
    ("target_length", "source_length"),
    ("first_length", "second_length"),
    ("length", "points_length"),
)
# Of the heads of self-attention rows and columns are pieces of one side.
_SELF = ("source_heads", "target_heads")
# What the decoder has read is as long as what it writes.
_AS_LONG_AS = {"read_pieces": "target_pieces"}


class ClientError(Exception):
    """A request that was not answered.

    Attributes:
        code: the name of the status, as gRPC has it: ``NOT_FOUND``, ``UNAVAILABLE``, ...
        message: what the server said, or why it was not reached.
    """

    def __init__(self, code: str, message: str):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


@dataclass(frozen=True)
class Reply:
    """What a server answered to one request.

    Attributes:
        outputs: NumPy arrays by name, the first dimension of each the batch; texts as ``bytes``.
        version: the model's, where the protocol tells it.
    """

    outputs: Mapping[str, np.ndarray]
    version: int | None = None

    def rows(self) -> list[Row]:
        """The answer row by row: texts as ``str``, and of each dimension what is real."""
        count = len(next(iter(self.outputs.values()))) if self.outputs else 0
        return [
            {name: _real(name, self.outputs, row) for name in self.outputs} for row in range(count)
        ]


def _real(name: str, outputs: Mapping[str, np.ndarray], row: int) -> Any:
    value = outputs[name][row]
    if not isinstance(value, np.ndarray) or not value.ndim:
        plain = value.item() if hasattr(value, "item") else value
        return _text(plain)
    limits = _limits(name, outputs, value.ndim)
    value = value[tuple(slice(None if key is None else int(outputs[key][row])) for key in limits)]
    return _texts(value.tolist()) if value.dtype == object else value.copy()


def _limits(name: str, outputs: Mapping[str, np.ndarray], dimensions: int) -> list[str | None]:
    """The outputs that say how long a dimension is, as far as there are such."""
    if dimensions == 1:
        return [_length(name, outputs)]
    rows, columns = next((pair for pair in _PAIRS if pair[0] in outputs), (None, None))
    if name in _SELF:
        rows = columns = _length(name, outputs)
    # Layers and heads come before the rows, and are all real.
    before = 2 if name.endswith("_heads") and dimensions >= 4 else 0
    limits: list[str | None] = [None] * dimensions
    limits[before] = rows
    # What has more dimensions is over the grid of an image.
    if dimensions == before + 2 and columns in outputs:
        limits[before + 1] = columns
    return limits


def _length(name: str, outputs: Mapping[str, np.ndarray]) -> str | None:
    """The output that says how many pieces, or whatever they are, this one's side has."""
    # "order" as "order_length" says, "first_weights" as "first_length", others as "length".
    side = _AS_LONG_AS.get(name, name).rpartition("_")[0]
    own = f"{side}_length" if side else "length"
    return next((key for key in (f"{name}_length", own, "length") if key in outputs), None)


def _text(value: Any) -> Any:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value


def _texts(value: Any) -> Any:
    return [_texts(one) for one in value] if isinstance(value, list) else _text(value)
