"""Rows as the inputs of a signature, which the server's own metadata describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from serving.client.replies import ClientError
from serving.saved_model import arrays


@dataclass(frozen=True)
class Input:
    """One input of a signature: its type (``string``, ``float``, ...) and its dimensions."""

    kind: str
    rank: int


@dataclass(frozen=True)
class Signature:
    """What a signature takes and gives.

    Attributes:
        inputs: by name.
        outputs: the types, by name.
    """

    inputs: Mapping[str, Input]
    outputs: Mapping[str, str]

    @property
    def entries(self) -> list[dict[str, str]]:
        """The inputs as a contract of Regard has them.

        Raises:
            ClientError: one is of no kind that Regard exports.
        """
        found = []
        for name, one in self.inputs.items():
            if name.removesuffix("_length") in self.inputs and name.endswith("_length"):
                continue
            kinds = {("string", 1): "text", ("float", 3): "points", ("int32", 2): "positions"}
            kind = kinds.get((one.kind, one.rank))
            if kind is None:
                told = f"input {name} is a {one.kind} of {one.rank} dimensions; use predict_arrays"
                raise ClientError("INVALID_ARGUMENT", told)
            found.append({"name": name, "kind": kind})
        return found


def batches(
    signature: Signature, rows: Sequence[Any], size: int
) -> Iterator[dict[str, np.ndarray]]:
    """Rows as requests of so many at most.

    Args:
        signature: that will be asked.
        rows: each a mapping of the inputs; or the one input itself where there is but one.
        size: of a request.

    Raises:
        ClientError: a row lacks an input, or has one that the signature has not.
    """
    entries = signature.entries
    names = [entry["name"] for entry in entries]
    named = [_named(row, number, names) for number, row in enumerate(rows)]
    for start in range(0, len(named), size):
        yield arrays(entries, named[start : start + size])


def _named(row: Any, number: int, names: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        if len(names) != 1:
            told = f"row {number} is no mapping, but the signature takes {', '.join(names)}"
            raise ClientError("INVALID_ARGUMENT", told)
        return {names[0]: row}
    if set(row) != set(names):
        told = f"row {number} has {', '.join(row) or 'nothing'}, but the signature takes"
        raise ClientError("INVALID_ARGUMENT", f"{told} {', '.join(names)}")
    return row
