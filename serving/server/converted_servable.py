"""A text-to-text model whose conversion for another engine computes some of the rows."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from grpc import StatusCode

from regard.serving.contract import IN_MEMORY, read_contract
from regard.serving.server.errors import ServingError
from regard.serving.server.servable import Servable
from regard.serving.server.tags import blank_pattern
from regard.serving.tensors import numpy_type

_MAX_TOKEN_CHARACTERS = 32  # of a source that the SavedModel does not shorten


class ConvertedServable(Servable):
    """A SavedModel, and a conversion of it that needs its tokenizers outside of the graph.

    TensorFlow computes the rows that the engine of the conversion would treat in another way: blank
    ones, those that are not UTF-8, and those longer than a limit.

    Args:
        name: the model's name.
        path: its folder.
        converted: the folder of the conversion, with the tokenizers.
        search: the section ``search`` of the model.
        max_tokens: the maximum number of source tokens that the engine computes.

    Raises:
        ServingError: as `Servable`.
    """

    def __init__(
        self, name: str, path: Path, converted: Path, search: Mapping[str, Any], max_tokens: int
    ):
        import sentencepiece

        super().__init__(name, path)
        self._contract, self._search = read_contract(path), search
        self._max_tokens = min(search["max_source_length"], max_tokens)
        self._blank = blank_pattern(self._contract)
        self._source, self._target = (
            sentencepiece.SentencePieceProcessor(model_file=str(converted / f"{side}.model"))
            for side in ("source", "target")
        )

    def _decode_source(self, source: bytes) -> str:
        """Return a source as text; "" if TensorFlow has to compute it."""
        if len(source) > _MAX_TOKEN_CHARACTERS * self._max_tokens:
            return ""
        try:
            text = source.decode()
        except UnicodeDecodeError:
            return ""
        return "" if self._blank.fullmatch(text) else text

    def _max_length(self, tokens: int) -> int:
        """Return the longest output for a source of this many tokens, with the end."""
        longest = int(np.float32(tokens) * np.float32(self._search["max_length_factor"]))
        return longest + self._search["max_length_offset"] + 1

    def _stack(self, name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
        """Return the outputs of a signature, ``[batch, ...]``, from those of each row by name."""
        return {
            key: _stack_values([row[key] for row in rows], numpy_type(info.dtype))
            for key, info in self.signatures[name].outputs.items()
        }

    def _stored_rows(self) -> list[tuple[bytes, dict[str, Any]]]:
        """Return the sources that the Trainer stored, each with the outputs of the model.

        Raises:
            ServingError: the version has none.
        """
        (source,) = self._contract["inputs"]
        try:
            rows = json.loads((self.path / IN_MEMORY).read_text(encoding="utf-8"))
        except FileNotFoundError:
            message = f"The version has no {IN_MEMORY}, so that its conversion cannot be verified."
            raise ServingError(StatusCode.FAILED_PRECONDITION, message) from None
        return [(row["inputs"][source["name"]].encode(), row["answer"]) for row in rows]


def _stack_values(values: Sequence[Any], dtype: str) -> np.ndarray:
    """Return values of equal ranks as one array, ``[batch, ...]``, padded to the largest."""
    arrays = [np.asarray(value, dtype) for value in values]
    shape = np.max([array.shape for array in arrays], axis=0).astype(int)
    stacked = np.full((len(arrays), *shape), b"<pad>" if dtype == "object" else 0, dtype)
    for row, array in enumerate(arrays):
        index: tuple[Any, ...] = (row, *map(slice, array.shape))
        stacked[index] = array[()]
    return stacked
