"""A tokenizer that knows the protected spans of its rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from regard.models.protected_spans import CLOSE, SLOTS, protection_symbols
from regard.models.settings.protect import ProtectConfig
from regard.models.tasks.copy_tokenizer import string_tokens
from regard.models.tasks.protected_sources import SYMBOLS, ProtectedSources, outlined, restore
from regard.models.tasks.protected_texts import render, same_slots, with_closing, without_inline
from regard.models.tasks.span_finding import (
    OPENING,
    UNUSABLE,
    are_tags,
    find_spans,
    span_keys,
    span_texts,
)


class ProtectingTokenizer:
    """A SentencePiece tokenizer for texts of rows whose protected spans are known.

    Args:
        tokenizer: The tokenizer of a side (``tensorflow_text``), whose vocabulary has the symbols.
        config: The section ``data.protect``.
        sources: The sources of the rows.
        slots: The slot of each token of the vocabulary, see ``slots_of_tokens``.
        put_in: Returns the tokens of outputs ``[batch * n, (length)]`` with the spans that
            attention places; None if it places none.
    """

    def __init__(
        self,
        tokenizer: Any,
        config: ProtectConfig,
        sources: ProtectedSources,
        slots: np.ndarray,
        put_in: Callable[[tf.RaggedTensor], tf.RaggedTensor] | None = None,
    ):
        self.tokenizer, self.config, self.sources = tokenizer, config, sources
        self._slots, self._put_in = slots, put_in

    def protect(self, texts: tf.Tensor, rows: tf.Tensor, with_pairs: bool) -> tf.Tensor:
        """Return texts ``[n]`` in which the spans of their rows' sources are symbols.

        Args:
            texts: The texts.
            rows: The row of each text, ``[n]``.
            with_pairs: Whether pairs of tags become symbols; otherwise all tags are left out.
        """
        config, sources = self.config, self.sources

        def protect() -> tf.Tensor:
            spans = find_spans(texts, config)
            if not with_pairs and config.has_markup:
                spans = spans._replace(kinds=tf.where(are_tags(spans), OPENING, spans.kinds))
            spans = without_inline(spans, config.by_attention or not with_pairs)
            keys = span_keys(spans, span_texts(spans, config, is_source=False), rows)
            numbers = tf.unique(tf.concat([sources.keys, keys], 0)).idx
            slots = same_slots(numbers, sources.slots, tf.size(sources.keys))
            return render(spans, with_closing(spans, slots))

        def keep() -> tf.Tensor:
            return tf.strings.regex_replace(texts, UNUSABLE, "\ufffd")

        return tf.cond(sources.has_spans, outlined(protect), keep)

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of one text of each row, ``[batch]``, with one more dimension."""
        rows = tf.range(tf.size(texts))
        return self.tokenizer.tokenize(self.protect(texts, rows, with_pairs=True))

    def tokenize_constraints(self, texts: tf.Tensor | tf.RaggedTensor) -> tf.RaggedTensor:
        """Return the ids of texts ``[batch]`` or ``[batch, (n)]`` that are parts of outputs.

        Opening and closing tags are left out: the search nests those of the source.
        """
        if isinstance(texts, tf.RaggedTensor):
            rows = tf.cast(texts.value_rowids(), tf.int32)
            protected = self.protect(texts.values, rows, with_pairs=False)
            return texts.with_values(self.tokenizer.tokenize(protected))
        rows = tf.range(tf.size(texts))
        return self.tokenizer.tokenize(self.protect(texts, rows, with_pairs=False))

    def string_tokens(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the tokens of one text of each row as strings ``[batch, (tokens)]``."""
        rows = tf.range(tf.size(texts))
        return string_tokens(self.tokenizer, self.protect(texts, rows, True), split=False)

    def id_to_string(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the tokens of ids ``[batch * n, ...]`` as strings, with the texts of spans."""
        strings = self.tokenizer.id_to_string(ids)
        slots = tf.gather(self._slots, ids)
        copies = tf.shape(ids)[0] // tf.maximum(tf.shape(self.sources.literals)[0], 1)
        literals = tf.repeat(self.sources.literals, copies, axis=0)
        texts = tf.gather(literals, tf.maximum(slots, 0), batch_dims=1)
        signs = tf.strings.regex_replace(strings, SYMBOLS, "")
        return tf.where(slots >= 0, tf.strings.join([signs, texts]), strings)

    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Return the texts of ids ``[batch * n, (length)]``, with the texts of spans."""
        copies = ids.nrows(tf.int32) // tf.maximum(tf.shape(self.sources.literals)[0], 1)

        def put_back() -> tf.Tensor:
            every = self._put_in(ids) if self._put_in is not None else ids
            literals = tf.repeat(self.sources.literals, copies, axis=0)
            return tf.strings.strip(restore(self.tokenizer.detokenize(every), literals))

        return tf.cond(
            self.sources.has_spans, outlined(put_back), lambda: self.tokenizer.detokenize(ids)
        )


def slots_of_tokens(tokenizer: Any) -> np.ndarray:
    """Return the slot of each token of a vocabulary, -1 for ordinary ones; int32."""
    slots = np.full(int(tokenizer.vocab_size()), -1, np.int32)
    slots[tokenizer.string_to_id(protection_symbols()).numpy()] = [*range(SLOTS), *range(CLOSE)]
    return slots
