"""The tokens of texts and their offsets, in the Transform graph and in the exported graph."""

from typing import Any, NamedTuple

import tensorflow as tf

_MARK = "\x1f"
# White space, or a punctuation mark or symbol with the marks and joiners that belong to it.
_SPLIT = r"([\s\p{Z}]+|[\p{P}\p{S}][\p{M}\x{200D}]*)"
_END = tf.int64.max  # the offset after a text's last character


class Tokens(NamedTuple):
    """The tokens of texts: ids and offsets ``[batch, (tokens)]``, ragged and int32.

    ``begins`` and ``ends`` are bytes of the text.
    """

    ids: tf.RaggedTensor
    begins: tf.RaggedTensor
    ends: tf.RaggedTensor


def tokenize(tokenizer: Any, texts: tf.Tensor) -> Tokens:
    """Return the tokens of texts ``[batch]``.

    SentencePiece's own offsets are wrong around inserted spaces and in characters that become
    several. So each word and each punctuation mark is tokenized alone, and a token ends where the
    next one begins.
    """
    # A mark of the text itself counts as white space.
    marked = tf.strings.regex_replace(texts, _MARK, " ")
    marked = tf.strings.regex_replace(marked, _SPLIT, rf"{_MARK}\1{_MARK}")
    segments = tf.strings.split(marked, _MARK)
    sizes = segments.with_flat_values(tf.strings.length(segments.flat_values))
    ends = tf.cumsum(sizes.to_tensor(), axis=1)
    segment_ends = tf.gather_nd(ends, tf.where(tf.sequence_mask(segments.row_lengths())))
    ids, begins, _ = tokenizer.tokenize_with_offsets(segments.flat_values)
    owners = ids.value_rowids()
    own_end = tf.gather(segment_ends, owners)
    begin = own_end - tf.gather(sizes.flat_values, owners) + tf.cast(begins.flat_values, tf.int32)
    is_last = tf.concat([owners[1:] != owners[:-1], [True]], axis=0)[: tf.size(owners)]
    end = tf.where(is_last, own_end, tf.roll(begin, -1, axis=0))
    # Of several tokens for one character, only the last has an extent.
    has_extent = end > begin
    rows = tf.boolean_mask(tf.gather(segments.value_rowids(), owners), has_extent)
    values = (tf.cast(ids.flat_values, tf.int32), begin, end)
    return Tokens(
        *(
            tf.RaggedTensor.from_value_rowids(
                tf.boolean_mask(value, has_extent), rows, nrows=segments.nrows()
            )
            for value in values
        )
    )


def to_characters(texts: tf.Tensor, offsets: tf.Tensor) -> tf.Tensor:
    """Convert byte offsets ``[batch, n]``, n > 0, in texts ``[batch]`` to character offsets."""
    _, starts = tf.strings.unicode_decode_with_offsets(texts, "UTF-8")
    # A search needs a column, also in an empty batch.
    starts = tf.pad(starts.to_tensor(_END), [[0, 0], [0, 1]], constant_values=_END)
    return tf.searchsorted(starts, tf.cast(offsets, tf.int64))
