"""Random segmentations of the training texts, drawn again in every epoch."""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import numpy as np
import sentencepiece

from regard.core.ragged import Ragged
from regard.models.tasks.network import Rows
from regard.models.vocabulary import UNK


class SubwordSampling:
    """Replaces the tokens of a text by those of a random segmentation of the same text.

    With a unigram tokenizer, this is the subword regularization of Kudo 2018, "Subword
    Regularization: Improving Neural Network Translation Models with Multiple Subword Candidates",
    §3.2, from all segmentations; with a BPE tokenizer, the dropout of merges of Provilkov et al.
    2020, "BPE-Dropout: Simple and Effective Subword Regularization", §3. A text with unknown
    characters keeps its tokens, as does one that would become longer than ``max_length``.

    Args:
        models: the serialized SentencePiece model of each text feature.
        alpha: unigram: the exponent of the probabilities of segmentations; BPE: the probability
            that a merge is skipped.
        max_length: the maximum length of a text in tokens, EOS included.
        seed: the seed of the segmentations.
    """

    # SentencePiece has one seed per process, and a generator per thread, which reads it once.
    _lock = threading.Lock()

    def __init__(self, models: Mapping[str, bytes], alpha: float, max_length: int, seed: int):
        self._processors = {
            name: sentencepiece.SentencePieceProcessor(model_proto=model)
            for name, model in models.items()
        }
        self._alpha, self._max_length, self._seed = alpha, max_length, seed

    def __call__(self, rows: Rows, *key: int) -> Rows:
        """Return rows with sampled ``<text>_ids``.

        Args:
            rows: the columns of training rows.
            key: integers that name the batch; equal ones give equal segmentations.
        """
        sampled = dict(rows)
        for number, name in enumerate(self._processors):
            column = f"{name}_ids"
            sampled[column] = self._sample(name, rows[column], (number, *key))
        return sampled

    def _sample(self, name: str, ids: Ragged, key: tuple[int, ...]) -> Ragged:
        """Return other segmentations of the texts of a feature."""
        processor = self._processors[name]
        rows = [ids[row].tolist() for row in range(len(ids))]
        texts = processor.decode(rows)
        seed = np.random.SeedSequence([self._seed, *key]).generate_state(1)[0]
        with self._lock, ThreadPoolExecutor(1) as new_thread:
            sentencepiece.set_random_generator_seed(int(seed))
            options: Any = {"enable_sampling": True, "alpha": self._alpha, "nbest_size": -1}
            sampled = new_thread.submit(processor.encode, texts, num_threads=1, **options).result()
        rows = [
            old if UNK in old or not 0 < len(new) < self._max_length else new
            for old, new in zip(rows, sampled, strict=True)
        ]
        values = np.fromiter(chain.from_iterable(rows), ids.values.dtype)
        return Ragged.from_lengths(values, np.array([len(row) for row in rows]))
