"""Temporary ids for the tokens of a source that the vocabulary lacks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from regard.models.vocabulary import SPACE, UNK


class CopyTokenizer:
    """A SentencePiece tokenizer with an extended vocabulary for each row of a batch.

    See et al. 2017, "Get To The Point: Summarization with Pointer-Generator Networks", §2.2: the
    i-th unknown token of a row's source has the id ``vocabulary + i``, also in other texts of the
    row; the first occurrence counts. Only tokenizers without byte fallback have unknown tokens:
    whole words, or runs of characters that the training data lacks.

    Args:
        tokenizer: The tokenizer of both sides (``tensorflow_text``).
        unknown: The unknown tokens of each row's source, ``[batch, n]``, and at least one empty
            string after them.
    """

    def __init__(self, tokenizer: Any, unknown: tf.Tensor):
        self.tokenizer, self.unknown = tokenizer, unknown
        self._size = tf.cast(tokenizer.vocab_size(), tf.int32)

    @staticmethod
    def from_sources(tokenizer: Any, sources: tf.Tensor, limit: int | None = None) -> CopyTokenizer:
        """Return the tokenizer of sources ``[batch]``, of which ``limit`` tokens count."""
        tokens = string_tokens(tokenizer, sources, split=True)[:, :limit]
        is_unknown = tokens.with_values(tokenizer.string_to_id(tokens.values) == UNK)
        unknown = tf.ragged.boolean_mask(tokens, is_unknown)
        ends = tf.fill([tf.shape(sources)[0], 1], "")
        return CopyTokenizer(tokenizer, tf.concat([unknown, ends], axis=1).to_tensor(""))

    def for_rows(self, rows: tf.Tensor) -> CopyTokenizer:
        """Return the tokenizer of texts that belong to these rows, ``[texts]``."""
        return CopyTokenizer(self.tokenizer, tf.gather(self.unknown, rows))

    def tokenize(self, texts: tf.Tensor | tf.RaggedTensor) -> tf.RaggedTensor:
        """Return the ids of texts ``[batch]`` or ``[batch, (n)]``, with one more dimension."""
        if isinstance(texts, tf.RaggedTensor):
            return texts.with_values(self.for_rows(texts.value_rowids()).tokenize(texts.values))
        tokens = string_tokens(self.tokenizer, texts, split=True)
        ids = self.tokenizer.string_to_id(tokens.values)
        at = tf.where(ids == UNK)
        rows = tf.gather_nd(tokens.value_rowids(), at)
        # The place of the first equal token of a row, in a time that is linear in the tokens.
        columns, count = tf.shape(self.unknown)[1], tf.size(self.unknown)
        owners = tf.concat([tf.range(count) // columns, tf.cast(rows, tf.int32)], 0)
        words = tf.concat([tf.reshape(self.unknown, [-1]), tf.gather_nd(tokens.values, at)], 0)
        pairs = tf.unique(tf.strings.join([tf.strings.as_string(owners), words], " ")).idx
        firsts = tf.math.unsorted_segment_min(tf.range(tf.size(pairs)), pairs, tf.size(pairs))
        place = tf.gather(firsts, pairs[count:])
        copied = tf.where(place < count, self._size + place % columns, UNK)
        return tokens.with_values(tf.tensor_scatter_nd_update(ids, at, copied))

    def id_to_string(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the tokens of ids ``[batch * n, ...]``; ``n`` texts of a row follow each other."""
        copies = tf.shape(ids)[0] // tf.maximum(tf.shape(self.unknown)[0], 1)
        unknown = tf.repeat(self.unknown, copies, axis=0)
        index = tf.clip_by_value(ids - self._size, 0, tf.shape(unknown)[1] - 1)
        known = self.tokenizer.id_to_string(tf.where(ids < self._size, ids, UNK))
        return tf.where(ids < self._size, known, tf.gather(unknown, index, batch_dims=1))

    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Return the texts of ids ``[batch * n, (length)]``; copied words are as in the source."""
        strings = self.id_to_string(ids.to_tensor())
        texts = self.tokenizer.detokenize(tf.RaggedTensor.from_tensor(strings, ids.row_lengths()))
        texts = tf.strings.regex_replace(texts, f"^{SPACE}", "")
        return tf.strings.regex_replace(texts, SPACE, " ")


def detokenize(tokenizer: Any, ids: tf.RaggedTensor) -> tf.Tensor:
    """Return the texts of ids ``[batch, (length)]`` whose sources are not known.

    A copied token becomes a placeholder, the same for equal ids.
    """
    size = tf.cast(tokenizer.vocab_size(), tf.int32)
    count = tf.maximum(tf.reduce_max(ids.values) + 1, size) - size
    names = tf.strings.join([SPACE + "copy", tf.strings.as_string(tf.range(count))])
    names = tf.tile(tf.concat([names, [""]], 0)[None], [ids.nrows(tf.int32), 1])
    return CopyTokenizer(tokenizer, names).detokenize(ids)


def token_strings(tokenizer: Any, ids: tf.Tensor, texts: tf.Tensor | None = None) -> tf.Tensor:
    """Return the tokens of ids as strings; the unknown ones are as in their texts.

    Args:
        tokenizer: The tokenizer of the ids, also a ``CopyTokenizer`` or ``ProtectingTokenizer``.
        ids: ``[batch, tokens]``.
        texts: The texts ``[batch]`` that have these tokens; None: the ids are an output, in which
            an unknown word is ``<unk>``, with the sign of a word if all tokens are whole words.
    """
    copies = isinstance(tokenizer, CopyTokenizer)
    plain = getattr(tokenizer, "tokenizer", tokenizer)
    if texts is None:
        # All other vocabularies contain the sign alone.
        sign = tf.where(plain.string_to_id(SPACE) == UNK, SPACE, "")
        unknown = tf.strings.join([sign, plain.id_to_string(UNK)])
    else:
        shape = tf.shape(ids, tf.int64)
        if hasattr(tokenizer, "string_tokens"):
            tokens = tokenizer.string_tokens(texts)
        else:
            tokens = string_tokens(plain, texts, split=copies)
        unknown = tokens[:, : shape[1]].to_tensor("", shape=shape)
    return tf.where(ids == UNK, unknown, tokenizer.id_to_string(ids))


def string_tokens(tokenizer: Any, texts: tf.Tensor, split: bool) -> tf.RaggedTensor:
    """Return the tokens of texts ``[batch]`` as strings ``[batch, (tokens)]``.

    Args:
        tokenizer: A SentencePiece tokenizer (``tensorflow_text``).
        texts: The texts.
        split: Split adjacent unknown words, which SentencePiece joins, as ``CopyTokenizer`` does.
    """
    out_type = tokenizer.out_type
    tokenizer.out_type = tf.string  # a second tokenizer would be a second model in the graph
    try:
        tokens = tokenizer.tokenize(texts)
    finally:
        tokenizer.out_type = out_type
    if not split:
        return tokens
    is_unknown = tokenizer.string_to_id(tokens.values) == UNK
    marked = tf.strings.regex_replace(tokens.values, f"(.){SPACE}", f"\\1\n{SPACE}")
    marked = tf.where(is_unknown, marked, tokens.values)
    return tokens.with_values(tf.strings.split(marked, "\n")).merge_dims(1, 2)
