"""Spans that attention places: they are taken out of sources, and put into outputs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from regard.models.protected_spans import CLOSE, LITERALS, OPEN, PAIRS, SLOTS, symbol
from regard.models.tasks.tag_placement import AlignedTokens, TagPlaces, place_tags
from regard.models.tasks.text_preprocessing import to_dense
from regard.models.vocabulary import EOS, PAD, SPACE, UNSPACED

# A token that continues the word of the token before it.
_CONTINUATION = r"[\pL\pM\pN](?s:.*)"
_UNSPACED = f"[{UNSPACED}](?s:.*)"
_PUNCTUATION = r"[\pP\pS]+"


class InlineSpans(NamedTuple):
    """The symbols that were taken out of sources, by slot ``[batch, SLOTS]``.

    Attributes:
        order: The column of each symbol among all tokens of its source; -1 for none.
        column: The number of other tokens before it.
        is_spaced: Whether its token includes the space before it.
    """

    order: tf.Tensor
    column: tf.Tensor
    is_spaced: tf.Tensor


def take_out(
    ids: tf.Tensor, slots: tf.Tensor, by_attention: tf.Tensor, tokenizer: Any
) -> tuple[tf.Tensor, InlineSpans]:
    """Return sources without the symbols that attention places, and these.

    Args:
        ids: ``[batch, length]``, with EOS and padding.
        slots: The slot of each token of the vocabulary, -1 for ordinary ones.
        by_attention: ``[batch, SLOTS]``, which slots attention places.
        tokenizer: The tokenizer of the ids.
    """
    slot = tf.gather(slots, ids)
    is_inline = tf.gather(by_attention, tf.maximum(slot, 0), batch_dims=1) & (slot >= 0)
    stays = ~is_inline & (ids != PAD)
    places = tf.where(is_inline)
    at = tf.stack([places[:, 0], tf.cast(tf.gather_nd(slot, places), tf.int64)], axis=1)
    before = tf.cumsum(tf.cast(stays, tf.int32), axis=1, exclusive=True)
    spaced = tf.gather(_spaced_ids(tokenizer), tf.maximum(slot, 0))
    none = tf.fill(tf.shape(by_attention), -1)
    spans = InlineSpans(
        tf.tensor_scatter_nd_update(none, at, tf.cast(places[:, 1], tf.int32)),
        tf.tensor_scatter_nd_update(none, at, tf.gather_nd(before, places)),
        tf.tensor_scatter_nd_update(
            none, at, tf.cast(tf.gather_nd(ids == spaced, places), tf.int32)
        )
        > 0,
    )
    return to_dense(tf.ragged.boolean_mask(ids, stays)), spans


def put_in(
    ids: tf.RaggedTensor,
    weights: tf.Tensor,
    encoded: tf.Tensor,
    spans: InlineSpans,
    tokenizers: Mapping[str, Any],
) -> tf.RaggedTensor:
    """Return the tokens of outputs ``[n, (length)]`` with the spans of their sources.

    Args:
        ids: The tokens without EOS.
        weights: ``[n, length, source]``, the attention.
        encoded: ``[n, source]``, the sources without the spans.
        spans: The spans of the sources, ``[n, SLOTS]``.
        tokenizers: The tokenizers of ``source`` and ``target``.
    """
    dense, tokenizer = ids.to_tensor(-1), tokenizers["target"]
    weights = weights[:, : tf.shape(dense)[1]]
    is_word = (encoded != PAD) & (encoded != EOS)
    weights *= tf.cast(is_word, weights.dtype)[:, None]
    strings = tokenizer.id_to_string(tf.maximum(dense, 0))
    sources = tokenizers["source"].id_to_string(encoded)
    tokens = AlignedTokens(dense, _words(strings), _are_marks(strings), _are_marks(sources))
    return place_tags(tokens, weights, _tag_places(spans, tokenizer))


def _tag_places(spans: InlineSpans, tokenizer: Any) -> TagPlaces:
    """Return the spans of each row in their order."""
    plain = tokenizer.string_to_id([symbol(slot) for slot in range(SLOTS)])
    ids = tf.where(spans.is_spaced, _spaced_ids(tokenizer), plain)
    # An opening tag that begins a source need not begin an output.
    ids = tf.concat([ids[:, :OPEN], tf.zeros_like(ids[:, OPEN:]) + plain[OPEN:]], axis=1)
    parts = []
    for values, shift in ((spans.order, 0), (spans.column, 1), (ids, 0)):
        single, opening, closing = tf.split(values, [LITERALS, PAIRS, PAIRS], axis=1)
        first, last = (single, opening), (single + shift, closing)
        parts.append(tf.stack([tf.concat(first, 1), tf.concat(last, 1)], axis=2))
    order, bounds, pairs = parts
    exists = tf.reduce_all(order >= 0, axis=2)  # of a cut source, a tag can be missing
    keys = tf.where(exists, order[:, :, 0], tf.int32.max)
    count = tf.reduce_max(tf.reduce_sum(tf.cast(exists, tf.int32), axis=1), keepdims=True)
    chosen = tf.argsort(keys, axis=1)[:, : count[0]]
    order = tf.where(exists[:, :, None], order, -1)
    bounds = tf.maximum(bounds, 0)
    order, bounds, pairs = (tf.gather(x, chosen, batch_dims=1) for x in (order, bounds, pairs))
    return TagPlaces(order, bounds, pairs)


def _words(strings: tf.Tensor) -> tf.Tensor:
    """Return the number of the word of each token; punctuation is a word of its own."""
    continues = tf.strings.regex_full_match(strings, _CONTINUATION)
    continues &= ~tf.strings.regex_full_match(strings, _UNSPACED)
    return tf.cumsum(tf.cast(~continues, tf.int32), axis=1)


def _are_marks(strings: tf.Tensor) -> tf.Tensor:
    """Return which tokens are punctuation, with or without a space before it."""
    plain = tf.strings.regex_replace(strings, SPACE, "")
    return tf.strings.regex_full_match(plain, _PUNCTUATION)


def _spaced_ids(tokenizer: Any) -> tf.Tensor:
    """Return the tokens of symbols that include a space, 0 for closing tags; ``[SLOTS]``."""
    ids = tokenizer.string_to_id([f"{SPACE}{symbol(slot)}" for slot in range(CLOSE)])
    return tf.pad(ids, [[0, SLOTS - CLOSE]])
