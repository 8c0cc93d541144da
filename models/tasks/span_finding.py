"""Protected spans of texts, found in a graph: single ones, and pairs of tags."""

from typing import NamedTuple

import tensorflow as tf

from regard.models.protected_spans import (
    CLOSING_TAG,
    NUMBER,
    OPENING_TAG,
    VOID_TAG,
    symbol_class,
)
from regard.models.settings.protect import ProtectConfig

# Spans of one text that are examined; what follows stays text.
MAX_SPANS = 128
SEPARATOR = "\x1f"  # the unit separator of ASCII, around spans
# What a text cannot contain.
UNUSABLE = f"[{SEPARATOR}{symbol_class()}]"
# The kinds of parts of a text.
TEXT, SINGLE, POINT, OPENING, CLOSING = range(5)


class Spans(NamedTuple):
    """Texts ``[n]`` in parts, every second of which is a span.

    Attributes:
        parts: ``[n, (parts)]``; joined, they are the texts.
        kinds: ``[all parts]``: ``TEXT``, ``SINGLE``, a ``POINT`` that attention places, or the
            ``OPENING`` or ``CLOSING`` tag of a pair.
        partners: ``[all parts]``, the part with the other tag of a pair; others have themselves.
        faults: ``[n]``, the number of tags without a partner, which are single spans.
    """

    parts: tf.RaggedTensor
    kinds: tf.Tensor
    partners: tf.Tensor
    faults: tf.Tensor

    @property
    def rows(self) -> tf.Tensor:
        """The text of each part, int32."""
        return tf.cast(self.parts.value_rowids(), tf.int32)

    @property
    def count(self) -> tf.Tensor:
        """The number of texts, int32."""
        return self.parts.nrows(tf.int32)


def find_spans(texts: tf.Tensor, config: ProtectConfig) -> Spans:
    """Find the spans of texts ``[n]``; separators and symbols in the texts become U+FFFD."""
    clean = tf.strings.regex_replace(texts, UNUSABLE, "\ufffd")
    marked = tf.strings.regex_replace(clean, config.pattern(), rf"{SEPARATOR}\0{SEPARATOR}")
    parts = tf.strings.split(marked, SEPARATOR)
    values, rows = parts.values, parts.value_rowids()
    columns = tf.range(tf.size(rows, tf.int64)) - tf.gather(parts.row_starts(), rows)
    is_span = (columns % 2 == 1) & (columns < 2 * MAX_SPANS) & (strip_spaces(values) != "")
    kinds = tf.where(is_span, SINGLE, TEXT)
    if inline := config.inline_pattern():
        kinds = tf.where(is_span & _matches(values, inline), POINT, kinds)
    spans = Spans(parts, kinds, tf.range(tf.size(values)), tf.zeros_like(rows[:0], tf.int32))
    if not config.has_markup:
        return spans._replace(faults=tf.zeros([spans.count], tf.int32))
    is_tag, closes = are_tags(spans), _matches(values, CLOSING_TAG)
    return _pair_tags(spans, is_tag & closes, is_tag & ~closes)


def are_tags(spans: Spans) -> tf.Tensor:
    """Return which parts are opening or closing tags, also those without a partner."""
    values, is_span = spans.parts.values, spans.kinds != TEXT
    is_tag = is_span & _matches(values, f"{CLOSING_TAG}|{OPENING_TAG}")
    return is_tag & ~_matches(values, VOID_TAG)


def _matches(values: tf.Tensor, pattern: str) -> tf.Tensor:
    return tf.strings.regex_full_match(values, f"(?:{pattern})")


def _pair_tags(spans: Spans, closes: tf.Tensor, opens: tf.Tensor) -> Spans:
    """Return the spans with pairs of tags; a tag without a partner is a single span."""
    at = tf.cast(tf.where(opens | closes)[:, 0], tf.int32)
    rows = tf.gather(spans.rows, at)
    tags = tf.RaggedTensor.from_value_rowids(at, rows, nrows=spans.count)
    text = tf.gather(spans.parts.values, at)
    names = tf.strings.regex_replace(text, r"^ *</?([^\s/>]+)(?s:.*)$", r"\1")
    signs = tf.where(tf.gather(opens, at), 1, -1)
    names = tags.with_values(tf.unique(tf.strings.lower(names)).idx).to_tensor(-1)
    dense = match_pairs(tags.with_values(signs).to_tensor(0), names)
    columns = tf.ragged.range(tf.cast(tags.row_lengths(), tf.int32)).values
    partners = tf.gather_nd(dense, tf.stack([rows, columns], axis=1))
    is_pair = partners >= 0
    first = tf.cast(tf.gather(tags.row_starts(), rows), tf.int32)
    others = tf.where(is_pair, tf.gather(at, first + tf.maximum(partners, 0)), at)
    kinds = tf.where(is_pair, tf.where(signs > 0, OPENING, CLOSING), SINGLE)
    faults = tf.math.unsorted_segment_sum(tf.cast(~is_pair, tf.int32), rows, spans.count)
    return spans._replace(
        kinds=tf.tensor_scatter_nd_update(spans.kinds, at[:, None], kinds),
        partners=tf.tensor_scatter_nd_update(spans.partners, at[:, None], others),
        faults=faults,
    )


def match_pairs(signs: tf.Tensor, names: tf.Tensor) -> tf.Tensor:
    """Return the column of the other tag of each pair, -1 for a tag without one.

    A closing tag closes the last open tag of its name; tags that were opened after it and not
    closed have no partner.

    Args:
        signs: ``[n, tags]``, 1 for an opening tag, -1 for a closing one, 0 for padding.
        names: ``[n, tags]``, the numbers of the tags' names.
    """
    columns = tf.range(tf.shape(signs)[1])[None]

    def step(t: tf.Tensor, is_open: tf.Tensor, partners: tf.Tensor) -> tuple[tf.Tensor, ...]:
        name, sign = names[:, t : t + 1], signs[:, t : t + 1]
        last = tf.reduce_max(tf.where(is_open & (names == name), columns, -1), 1, keepdims=True)
        is_pair, is_here = (sign < 0) & (last >= 0), columns == t
        partners = tf.where(is_pair & is_here, last, partners)
        partners = tf.where(is_pair & (columns == last), t, partners)
        is_open = tf.where(is_pair, is_open & (columns < last), is_open)
        return t + 1, is_open | (is_here & (sign > 0)), partners

    start = (tf.constant(0), tf.zeros_like(signs, tf.bool), tf.fill(tf.shape(signs), -1))
    return tf.while_loop(lambda t, *_: t < tf.shape(signs)[1], step, start)[-1]


def span_texts(spans: Spans, config: ProtectConfig, is_source: bool) -> tf.Tensor:
    """Return the texts that an output has for the spans ``[all parts]``.

    Numbers of a source are converted. Spaces belong to pairs of tags only.
    """
    values = spans.parts.values
    texts = tf.where(spans.kinds < OPENING, strip_spaces(values), values)
    for rule in config.number_rules if is_source else ():
        is_number = _matches(values, NUMBER) & (spans.kinds == SINGLE)
        replaced = tf.strings.regex_replace(texts, rule.pattern, rule.replacement)
        texts = tf.where(is_number, replaced, texts)
    return texts


def span_keys(spans: Spans, texts: tf.Tensor, owners: tf.Tensor) -> tf.Tensor:
    """Return keys ``[all parts]``: a span of a source and one of its target have the same key.

    Of equal spans of a text, the first ones correspond, and the second ones.

    Args:
        spans: The spans.
        texts: The result of ``span_texts``.
        owners: The row of each text, int32 ``[n]``.
    """
    kinds = tf.strings.as_string(spans.kinds)
    others = tf.where(spans.kinds == OPENING, tf.gather(texts, spans.partners), "")
    names = tf.strings.join([kinds, strip_spaces(texts), strip_spaces(others)], SEPARATOR)
    numbers = tf.unique(tf.strings.join([tf.strings.as_string(spans.rows), names], SEPARATOR)).idx
    order = tf.argsort(numbers, stable=True)
    in_order = tf.gather(numbers, order)
    ranks = tf.range(tf.size(order)) - tf.searchsorted(in_order, in_order)
    occurrences = tf.scatter_nd(order[:, None], ranks, tf.shape(order))
    rows = tf.strings.as_string(tf.gather(owners, spans.rows))
    return tf.strings.join([rows, tf.strings.as_string(occurrences), names], SEPARATOR)


def strip_spaces(texts: tf.Tensor) -> tf.Tensor:
    """Return texts without spaces at both ends; other white space stays."""
    return tf.strings.regex_replace(texts, "^ +| +$", "")
