"""Decoding with the searches of Regard on the backend of this process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu.folder import MULTI30K, read_split
from regard.components.trainer.backends import current_backend
from regard.components.trainer.batches import Batches
from regard.core.ragged import Ragged
from regard.models import tasks
from regard.models.search import BeamSearch, GreedySearch, Search
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.greedy_decoding import OutputLimits, limits_of_texts
from regard.models.tasks.network import Batch, BatchDecoder
from regard.models.tasks.seq2seq_network import append_eos
from regard.models.tasks.text_to_text.settings import TextToTextModelConfig
from regard.models.tensors import Tensor
from regard.models.vocabulary import PAD

# The searches that are compared, and the limits of their outputs.
SEARCHES: Mapping[str, Search] = {
    "greedy": GreedySearch(),
    "beam 5": BeamSearch(5, length_penalty=1.0, n_best=1),
}
LIMITS = limits_of_texts(factor=2.0, offset=10)


class SearchDecoder(BatchDecoder):
    """Decodes ``source`` with any search.

    Args:
        model: in float32.
        search: the search; its best output counts.
        limits: the limits of the outputs.
    """

    inputs = ("source",)

    def __init__(self, model: Seq2Seq, search: Search, limits: OutputLimits):
        self._model, self._search, self._limits = model, search.best(), limits

    def compute(self, source: Tensor) -> Tensor:  # type: ignore[override]
        """Return the ids of the best output of each row, int32 ``[batch, length]``."""
        longest = None if None in source.shape else self._limits.longest(source.shape)
        limits = self._limits.of_rows(source)
        return self._model.search(source, self._search, limits, longest=longest).ids[:, 0]

    def outputs(self, computed: np.ndarray, batch: Batch) -> list[Any]:
        return trim(computed)

    def references(self, batch: Batch) -> list[Any]:
        return trim(batch["target"])


def build_model(settings: Mapping[str, Any], training: TrainingConfig, vocabulary: int) -> Seq2Seq:
    """Return the model of a section ``model``, with one vocabulary for both sides."""
    section = TextToTextModelConfig.model_validate(dict(settings))
    sizes = {"source": vocabulary, "target": vocabulary}
    model: Any = tasks.get_network("translation").build(section, training, sizes)
    return model


def decode(
    model: Seq2Seq,
    search: Search,
    limits: OutputLimits,
    batches: Batches,
    sources: Ragged,
    rows: int,
) -> tuple[list[list[int]], float]:
    """Decode sources in their order, in batches of one shape.

    Args:
        model: in float32.
        search: the search.
        limits: the limits of the outputs.
        batches: any batches of the model, which define its inputs.
        sources: the ids of the sources, without EOS.
        rows: the rows of a batch.

    Returns:
        The ids of the outputs with EOS, and the seconds without those of the compilation.
    """
    decoder = SearchDecoder(model, search, limits)
    compute = current_backend().compile_decoder(model, decoder, batches)
    source = append_eos(sources)
    count = len(source)
    source = np.pad(source, [(0, -count % rows), (0, 0)])
    compute(source[:rows])
    start = time.perf_counter()
    computed = [compute(source[first : first + rows]) for first in range(0, len(source), rows)]
    seconds = time.perf_counter() - start
    outputs = [ids for part in computed for ids in trim(part)]
    return outputs[:count], seconds


def trim(ids: np.ndarray) -> list[list[int]]:
    """Return padded ids ``[batch, length]`` as rows without padding."""
    return [row[row != PAD].tolist() for row in ids]


def share_equal(rows: list[list[int]], others: list[list[int]]) -> float:
    """Return the share of rows that are equal."""
    equal = [row == other for row, other in zip(rows, others, strict=True)]
    return sum(equal) / len(equal)


def read_sources(folder: Path, rows: int) -> Ragged:
    """Return the test sources that are decoded."""
    sources = read_split(folder, MULTI30K, "test")["source"]
    return sources.take(np.arange(min(rows, len(sources))))


def read_weights(reference: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return the weights of the model that is searched, in the order of the model."""
    count = sum(name.startswith("search/weight/") for name in reference)
    return [reference[f"search/weight/{number}"] for number in range(count)]
