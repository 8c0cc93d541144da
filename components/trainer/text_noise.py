"""Changed sources of the training rows, selected again in every epoch."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import sentencepiece

from regard.components.common.sentencepiece_models import symbols_of
from regard.core.ragged import Ragged
from regard.core.text_noise import change_text, draw_kind
from regard.models.settings.text_noise import TextNoiseConfig
from regard.models.tasks.network import Rows
from regard.models.vocabulary import UNK


class TextNoise:
    """Replaces the tokens of a share of the sources by those of the changed text.

    A training row holds tokens and not its text, but tokens without an unknown one decode to the
    text after normalization, and encode to the same tokens. So the change applies to the decoded
    text, and a text with unknown characters keeps its tokens, as does one that would become longer
    than ``max_length``. Tags and other symbols of the tokenizer do not change.

    Args:
        models: the serialized SentencePiece model of each text feature to change.
        config: the section ``training.noise``.
        max_length: the maximum length of a text in tokens, EOS included.
        seed: the seed of the changes.
    """

    def __init__(
        self, models: Mapping[str, bytes], config: TextNoiseConfig, max_length: int, seed: int
    ):
        self._processors = {
            name: sentencepiece.SentencePieceProcessor(model_proto=model)
            for name, model in models.items()
        }
        self._options = {name: config.options(symbols_of(model)) for name, model in models.items()}
        self._probabilities = config.probabilities()
        self._max_length, self._seed = max_length, seed

    def __call__(self, rows: Rows, epoch: int, numbers: Iterable[int]) -> Rows:
        """Return rows some of whose ``<text>_ids`` are those of changed texts.

        Args:
            rows: the columns of training rows.
            epoch: the epoch, from 0.
            numbers: the number of each row in the split. A row's change depends on it and the
                epoch only, not on the batch that it is in.
        """
        changed = dict(rows)
        for feature, name in enumerate(self._processors):
            column = f"{name}_ids"
            keys = [(self._seed, epoch, int(number), feature) for number in numbers]
            changed[column] = self._change(name, rows[column], keys)
        return changed

    def _change(self, name: str, ids: Ragged, keys: Sequence[tuple[int, ...]]) -> Ragged:
        """Return the tokens of a feature, with those of the changed texts."""
        processor, options = self._processors[name], self._options[name]
        rows = [ids[row].tolist() for row in range(len(ids))]
        kinds = [draw_kind(self._probabilities, key) for key in keys]
        selected = [row for row, kind in enumerate(kinds) if kind and UNK not in rows[row]]
        if not selected:
            return ids
        texts = processor.decode([rows[row] for row in selected])
        changed = [
            change_text(text, str(kinds[row]), options, (*keys[row], 1))
            for row, text in zip(selected, texts, strict=True)
        ]
        encoded: Any = processor.encode(changed, num_threads=1)
        for row, old, new, tokens in zip(selected, texts, changed, encoded, strict=True):
            if old != new and 0 < len(tokens) < self._max_length:
                rows[row] = tokens
        values = np.fromiter(chain.from_iterable(rows), ids.values.dtype)
        return Ragged.from_lengths(values, np.array([len(row) for row in rows]))
