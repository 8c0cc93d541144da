"""Greedy decoding of batches during the training of a sequence-to-sequence model."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from regard.models.search import GreedySearch
from regard.models.seq2seq import Seq2Seq
from regard.models.tasks.network import Batch, BatchDecoder
from regard.models.tensors import Tensor
from regard.models.vocabulary import EOS, PAD, SPACE


class OutputLimits(NamedTuple):
    """The maximum lengths of the outputs of a search, EOS included.

    Attributes:
        of_rows: returns the limits int32 ``[batch]`` of a batch of sources.
        longest: returns a number that no limit of sources of a static shape exceeds.
    """

    of_rows: Callable[[Tensor], Tensor]
    longest: Callable[[Sequence[int]], int]


class GreedyDecoder(BatchDecoder):
    """Decodes ``source`` with a greedy search; ``target`` is the reference.

    Args:
        model: in float32.
        limits: the limits of the search.
        to_outputs: the outputs of padded ids ``[batch, length]``.
    """

    inputs = ("source",)

    def __init__(
        self,
        model: Seq2Seq,
        limits: OutputLimits,
        to_outputs: Callable[[np.ndarray], list[Any]],
    ):
        self._model, self._limits, self._to_outputs = model, limits, to_outputs
        self._search = GreedySearch()

    def compute(self, source: Tensor) -> Tensor:
        """Return the ids of the outputs, int32 ``[batch, length]``."""
        longest = None if None in source.shape else self._limits.longest(source.shape)
        limits = self._limits.of_rows(source)
        return self._model.search(source, self._search, limits, longest=longest).ids[:, 0]

    def outputs(self, computed: np.ndarray, batch: Batch) -> list[Any]:
        return self._to_outputs(computed)

    def references(self, batch: Batch) -> list[Any]:
        return self._to_outputs(batch["target"])


def limits_of_texts(factor: float, offset: int) -> OutputLimits:
    """Return the limits for sources of padded ids ``[batch, length]`` with EOS.

    Args:
        factor: the tokens of an output for each token of the source.
        offset: the tokens in addition to those.
    """

    def of_rows(source: Tensor) -> Tensor:
        tokens = ops.sum(ops.cast(ops.not_equal(source, PAD), "int32"), axis=-1) - 1
        return ops.cast(ops.cast(tokens, "float32") * factor, "int32") + offset + 1

    def longest(shape: Sequence[int]) -> int:
        return int(np.float32(shape[1] - 1) * np.float32(factor)) + offset + 1

    return OutputLimits(of_rows, longest)


def texts_of_ids(processor: Any, ids: np.ndarray) -> list[str]:
    """Return the texts of padded ids ``[batch, length]`` whose sources are not known.

    An id after those of the vocabulary is a word that was copied from the source; it becomes a
    placeholder, the same for equal ids.
    """
    size = processor.vocab_size()
    texts = []
    for row in ids:
        tokens = [int(token) for token in row if token not in (PAD, EOS)]
        pieces = [
            processor.id_to_piece(token) if token < size else f"{SPACE}copy{token - size}"
            for token in tokens
        ]
        # An unknown piece keeps its sign of a space.
        text = processor.decode_pieces(pieces)
        texts.append(text.removeprefix(SPACE).replace(SPACE, " "))
    return texts
