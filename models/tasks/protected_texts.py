"""Texts in which symbols stand for protected spans, and the training pairs of such texts."""

import tensorflow as tf

from regard.models.protected_spans import (
    CLOSE,
    LITERALS,
    OPEN,
    PAIRS,
    SLOTS,
    symbol,
    symbol_class,
)
from regard.models.settings.protect import ProtectConfig
from regard.models.tasks.span_finding import (
    CLOSING,
    OPENING,
    POINT,
    SINGLE,
    TEXT,
    Spans,
    find_spans,
    span_keys,
    span_texts,
)

# Classes of symbols in RE2.
OPENINGS = f"[{symbol_class(OPEN, CLOSE)}]"
CLOSINGS = f"[{symbol_class(CLOSE)}]"


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
    source = without_inline(find_spans(sources, config), config.by_attention)
    target = without_inline(find_spans(targets.values, config), config.by_attention)
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
    source_slots = number_slots(source, is_common, starts)
    target_slots = same_slots(numbers, source_slots, count)
    protected = render(target, with_closing(target, target_slots))
    return render(source, source_slots), targets.with_values(protected)


def without_inline(spans: Spans, is_left_out: bool) -> Spans:
    """Return spans without pairs and those that attention places; their spaces stay."""
    if not is_left_out:
        return spans
    is_inline, values = spans.kinds >= POINT, spans.parts.values
    spaces = tf.strings.regex_replace(values, "^( *)(?s:.*?)( *)$", r"\1\2")
    parts = spans.parts.with_values(tf.where(is_inline, spaces, values))
    return spans._replace(parts=parts, kinds=tf.where(is_inline, TEXT, spans.kinds))


def number_slots(spans: Spans, is_accepted: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
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
    return with_closing(spans, slots)


def _row_starts(spans: Spans) -> tf.Tensor:
    return tf.cast(spans.parts.row_starts(), tf.int32)


def with_closing(spans: Spans, slots: tf.Tensor) -> tf.Tensor:
    """Return the slots with those of closing tags, which follow from the opening ones."""
    others = tf.gather(slots, spans.partners)
    closing = tf.where(others >= 0, others - OPEN + CLOSE, -1)
    return tf.where(spans.kinds == CLOSING, closing, tf.where(spans.kinds == TEXT, -1, slots))


def same_slots(numbers: tf.Tensor, slots: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Return the slots of parts whose keys have the same number as one of the first ``count``."""
    by_number = tf.math.unsorted_segment_max(slots, numbers[:count], tf.size(numbers))
    return tf.maximum(tf.gather(by_number, numbers[count:]), -1)


def render(spans: Spans, slots: tf.Tensor) -> tf.Tensor:
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
    texts = tf.strings.regex_replace(texts, f"^({OPENINGS}+)", r"\1 ")
    texts = tf.strings.regex_replace(texts, f"(?s)(.) ({OPENINGS}+)", r"\1\2 ")
    # A pair without a word stays together.
    texts = tf.strings.regex_replace(texts, f"^({OPENINGS}+) ({CLOSINGS})", r"\1\2")
    return tf.strings.regex_replace(texts, f"({OPENINGS}+) ({CLOSINGS})", r" \1\2")
