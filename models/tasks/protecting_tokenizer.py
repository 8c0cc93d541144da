"""Texts in which protected spans are symbols, and a tokenizer that knows the spans of its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from regard.models.protected_spans import (
    CLOSE,
    LITERALS,
    OPEN,
    PAIRS,
    SLOTS,
    protection_symbols,
    slots_of,
    symbol,
    symbol_class,
)
from regard.models.settings.protect import ProtectConfig
from regard.models.tasks.copy_tokenizer import string_tokens
from regard.models.tasks.span_finding import (
    CLOSING,
    OPENING,
    POINT,
    SEPARATOR,
    SINGLE,
    TEXT,
    UNUSABLE,
    Spans,
    are_tags,
    find_spans,
    span_keys,
    span_texts,
)

_OPENINGS = f"[{symbol_class(OPEN, CLOSE)}]"
_CLOSINGS = f"[{symbol_class(CLOSE)}]"
_SYMBOLS = f"[{symbol_class()}]"


def protect_pairs(
    sources: tf.Tensor, targets: tf.RaggedTensor, config: ProtectConfig
) -> tuple[tf.Tensor, tf.RaggedTensor]:
    """Return training texts in which the spans of both sides are symbols.

    Spans that a source and all of its targets have get the same symbol; others stay text. Spans
    that attention places are left out. The numbers of half of the rows begin at one that a hash
    draws, so that all symbols are trained.

    Args:
        sources: ``[batch]``.
        targets: ``[batch, (n)]``, the targets of each source.
        config: The section ``data.protect``.
    """
    source = _without_inline(find_spans(sources, config), config.by_attention)
    target = _without_inline(find_spans(targets.values, config), config.by_attention)
    owners = tf.cast(targets.value_rowids(), tf.int32)
    texts = span_texts(source, config, is_source=True), span_texts(target, config, is_source=False)
    source_keys = span_keys(source, texts[0], tf.range(tf.size(sources)))
    target_keys = span_keys(target, texts[1], owners)
    numbers = tf.unique(tf.concat([source_keys, target_keys], 0)).idx
    count = tf.size(source_keys)
    matches = tf.math.bincount(numbers[count:], minlength=tf.size(numbers))
    needed = tf.maximum(tf.gather(tf.cast(targets.row_lengths(), tf.int32), source.rows), 1)
    is_common = tf.gather(matches, numbers[:count]) == needed
    hashes = tf.strings.to_hash_bucket_fast(sources, 2 * LITERALS)
    starts = tf.where(hashes < LITERALS, tf.cast(hashes, tf.int32), 0)
    source_slots = _number_slots(source, is_common, starts)
    target_slots = _same_slots(numbers, source_slots, count)
    protected = _render(target, _with_closing(target, target_slots))
    return _render(source, source_slots), targets.with_values(protected)


def _without_inline(spans: Spans, is_left_out: bool) -> Spans:
    """Return spans without pairs and those that attention places; their spaces stay."""
    if not is_left_out:
        return spans
    is_inline, values = spans.kinds >= POINT, spans.parts.values
    spaces = tf.strings.regex_replace(values, "^( *)(?s:.*?)( *)$", r"\1\2")
    parts = spans.parts.with_values(tf.where(is_inline, spaces, values))
    return spans._replace(parts=parts, kinds=tf.where(is_inline, TEXT, spans.kinds))


def _number_slots(spans: Spans, is_accepted: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
    """Return the slot of each part, -1 for text: numbers in the order of the spans.

    Args:
        spans: The spans.
        is_accepted: ``[all parts]``, which spans get a slot if there is one left.
        starts: ``[n]``, the first numbers.
    """
    slots = tf.fill(tf.shape(spans.kinds), -1)
    is_literal = (spans.kinds == SINGLE) | (spans.kinds == POINT)
    for is_kind, first, limit in (
        (is_literal, 0, LITERALS),
        (spans.kinds == OPENING, OPEN, PAIRS),
    ):
        counted = tf.cast(is_kind & is_accepted, tf.int32)
        before = tf.pad(tf.cumsum(counted), [[1, 0]])
        ranks = before[:-1] - tf.gather(before, tf.gather(_row_starts(spans), spans.rows))
        numbers = first + (ranks + tf.gather(starts, spans.rows)) % limit
        slots = tf.where((counted > 0) & (ranks < limit), numbers, slots)
    return _with_closing(spans, slots)


def _row_starts(spans: Spans) -> tf.Tensor:
    return tf.cast(spans.parts.row_starts(), tf.int32)


def _with_closing(spans: Spans, slots: tf.Tensor) -> tf.Tensor:
    """Return the slots with those of closing tags, which follow from the opening ones."""
    others = tf.gather(slots, spans.partners)
    closing = tf.where(others >= 0, others - OPEN + CLOSE, -1)
    return tf.where(spans.kinds == CLOSING, closing, tf.where(spans.kinds == TEXT, -1, slots))


def _same_slots(numbers: tf.Tensor, slots: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Return the slots of parts whose keys have the same number as one of the first ``count``."""
    by_number = tf.math.unsorted_segment_max(slots, numbers[:count], tf.size(numbers))
    return tf.maximum(tf.gather(by_number, numbers[count:]), -1)


def _render(spans: Spans, slots: tf.Tensor) -> tf.Tensor:
    """Return the texts ``[n]`` with symbols; an opening tag stands before the space of its word.

    ``A <b>dog</b>`` becomes ``A`` ``<b>`` `` dog`` ``</b>``, so that the word keeps its tokens.
    """
    values = spans.parts.values
    symbols = tf.gather([*map(symbol, range(SLOTS))], tf.maximum(slots, 0))
    left = tf.strings.regex_replace(values, "^( *)(?s:.*)$", r"\1")
    right = tf.strings.regex_replace(values, "^(?s:.*?)( *)$", r"\1")
    spaced = tf.where(spans.kinds < OPENING, tf.strings.join([left, symbols, right]), symbols)
    texts = tf.strings.unsorted_segment_join(
        tf.where(slots >= 0, spaced, values), spans.rows, spans.count
    )
    texts = tf.strings.regex_replace(texts, f"^({_OPENINGS}+)", r"\1 ")
    texts = tf.strings.regex_replace(texts, f"(?s)(.) ({_OPENINGS}+)", r"\1\2 ")
    # A pair without a word stays together.
    texts = tf.strings.regex_replace(texts, f"^({_OPENINGS}+) ({_CLOSINGS})", r"\1\2")
    return tf.strings.regex_replace(texts, f"({_OPENINGS}+) ({_CLOSINGS})", r" \1\2")


def restore(texts: tf.Tensor, literals: tf.Tensor) -> tf.Tensor:
    """Return texts ``[n]`` with the spans ``[n, SLOTS]`` in place of symbols.

    It is the inverse of the protection of a text.
    """
    texts = tf.strings.regex_replace(texts, f"^({_OPENINGS}+) ", r"\1")
    texts = tf.strings.regex_replace(texts, f"({_OPENINGS}+) ", r" \1")
    marked = tf.strings.regex_replace(texts, _SYMBOLS, rf"{SEPARATOR}\0{SEPARATOR}")
    parts = tf.strings.split(marked, SEPARATOR)
    values, rows = parts.values, tf.cast(parts.value_rowids(), tf.int32)
    is_symbol = tf.strings.regex_full_match(values, _SYMBOLS)
    codes = tf.strings.unicode_decode(tf.where(is_symbol, values, symbol(0)), "UTF-8").values
    slots = slots_of(codes)
    spans = tf.gather_nd(literals, tf.stack([rows, slots], axis=1))
    values = tf.where(is_symbol, spans, values)
    return tf.strings.unsorted_segment_join(values, rows, tf.size(texts))


class ProtectedSources(NamedTuple):
    """Sources ``[batch]`` and their spans.

    Attributes:
        texts: The sources with symbols.
        keys: The keys of the spans of all sources, see ``span_keys``.
        slots: Their slots, -1 for what stays text.
        literals: ``[batch, SLOTS]``, the text of each slot; empty without a span.
        by_attention: ``[batch, SLOTS]``, which spans attention places.
        faults: ``[batch]``, the numbers of tags without a partner.
    """

    texts: tf.Tensor
    keys: tf.Tensor
    slots: tf.Tensor
    literals: tf.Tensor
    by_attention: tf.Tensor
    faults: tf.Tensor

    @property
    def has_spans(self) -> tf.Tensor:
        """Whether any source has a span."""
        return tf.size(self.keys) > 0


def protect_sources(sources: tf.Tensor, config: ProtectConfig) -> ProtectedSources:
    """Return sources ``[batch]`` in which spans are symbols, numbered in their order.

    Texts without spans cost one search for them.
    """
    left = tf.strings.regex_replace(sources, f"{config.pattern()}|{UNUSABLE}", "")

    def protect() -> ProtectedSources:
        spans = find_spans(sources, config)
        texts = span_texts(spans, config, is_source=True)
        keys = span_keys(spans, texts, tf.range(spans.count))
        slots = _number_slots(spans, keys != "", tf.zeros([spans.count], tf.int32))
        at = tf.where(slots >= 0)[:, 0]
        places = tf.stack([tf.gather(spans.rows, at), tf.gather(slots, at)], axis=1)
        shape = [spans.count, SLOTS]
        is_inline = config.by_attention & (tf.gather(spans.kinds, at) >= POINT)
        return ProtectedSources(
            _render(spans, slots),
            keys,
            slots,
            tf.tensor_scatter_nd_update(tf.fill(shape, ""), places, tf.gather(texts, at)),
            tf.scatter_nd(places, tf.cast(is_inline, tf.int32), shape) > 0,
            spans.faults,
        )

    def keep() -> ProtectedSources:
        shape = [tf.size(sources), SLOTS]
        none = tf.zeros([0], tf.int32)
        literals = tf.fill(shape, "")
        faults = tf.zeros(shape[:1], tf.int32)
        by_attention = tf.zeros(shape, tf.bool)
        return ProtectedSources(sources, tf.fill([0], ""), none, literals, by_attention, faults)

    return tf.cond(tf.reduce_all(left == sources), keep, outlined(protect))


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
            spans = _without_inline(spans, config.by_attention or not with_pairs)
            keys = span_keys(spans, span_texts(spans, config, is_source=False), rows)
            numbers = tf.unique(tf.concat([sources.keys, keys], 0)).idx
            slots = _same_slots(numbers, sources.slots, tf.size(sources.keys))
            return _render(spans, _with_closing(spans, slots))

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
        signs = tf.strings.regex_replace(strings, _SYMBOLS, "")
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


def outlined(branch: Callable[[], Any]) -> Callable[[], Any]:
    """Return a branch as one operation of the graph.

    TensorFlow visits every operation of a branch that is not taken: of a search, 5% of the time of
    a sentence.
    """
    if tf.executing_eagerly():
        return branch
    return tf.function(branch, autograph=False, experimental_attributes={"_noinline": True})


def slots_of_tokens(tokenizer: Any) -> np.ndarray:
    """Return the slot of each token of a vocabulary, -1 for ordinary ones; int32."""
    slots = np.full(int(tokenizer.vocab_size()), -1, np.int32)
    slots[tokenizer.string_to_id(protection_symbols()).numpy()] = [*range(SLOTS), *range(CLOSE)]
    return slots
