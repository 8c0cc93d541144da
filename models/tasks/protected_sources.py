"""Sources in which symbols stand for protected spans, and outputs with the spans put back."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from regard.models.protected_spans import SLOTS, slots_of, symbol, symbol_class
from regard.models.settings.protect import ProtectConfig
from regard.models.tasks.protected_texts import OPENINGS, number_slots, render
from regard.models.tasks.span_finding import (
    POINT,
    SEPARATOR,
    UNUSABLE,
    find_spans,
    span_keys,
    span_texts,
)

SYMBOLS = f"[{symbol_class()}]"  # a class of RE2


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
        slots = number_slots(spans, keys != "", tf.zeros([spans.count], tf.int32))
        at = tf.where(slots >= 0)[:, 0]
        places = tf.stack([tf.gather(spans.rows, at), tf.gather(slots, at)], axis=1)
        shape = [spans.count, SLOTS]
        is_inline = config.by_attention & (tf.gather(spans.kinds, at) >= POINT)
        return ProtectedSources(
            render(spans, slots),
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


def restore(texts: tf.Tensor, literals: tf.Tensor) -> tf.Tensor:
    """Return texts ``[n]`` with the spans ``[n, SLOTS]`` in place of symbols.

    It is the inverse of the protection of a text.
    """
    texts = tf.strings.regex_replace(texts, f"^({OPENINGS}+) ", r"\1")
    texts = tf.strings.regex_replace(texts, f"({OPENINGS}+) ", r" \1")
    marked = tf.strings.regex_replace(texts, SYMBOLS, rf"{SEPARATOR}\0{SEPARATOR}")
    parts = tf.strings.split(marked, SEPARATOR)
    values, rows = parts.values, tf.cast(parts.value_rowids(), tf.int32)
    is_symbol = tf.strings.regex_full_match(values, SYMBOLS)
    codes = tf.strings.unicode_decode(tf.where(is_symbol, values, symbol(0)), "UTF-8").values
    slots = slots_of(codes)
    spans = tf.gather_nd(literals, tf.stack([rows, slots], axis=1))
    values = tf.where(is_symbol, spans, values)
    return tf.strings.unsorted_segment_join(values, rows, tf.size(texts))


def outlined(branch: Callable[[], Any]) -> Callable[[], Any]:
    """Return a branch as one operation of the graph.

    TensorFlow visits every operation of a branch that is not taken: of a search, 5% of the time of
    a sentence.
    """
    if tf.executing_eagerly():
        return branch
    return tf.function(branch, autograph=False, experimental_attributes={"_noinline": True})
