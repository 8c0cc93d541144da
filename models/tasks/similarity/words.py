"""The words of a sentence, unknown ones too."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from models.vocabulary import UNK


def words_of(tokenizer: Any, text: tf.Tensor) -> tf.RaggedTensor:
    """The pieces of texts ``[batch]`` as they stand there, in ``[batch, (pieces)]`` strings."""
    # Word by word: of a whole sentence SentencePiece joins unknown words that are neighbours.
    words = tf.strings.split(text)
    usual = tokenizer.out_type
    tokenizer.out_type = tf.string  # a second tokenizer would be a second model in the graph
    try:
        pieces = tokenizer.tokenize(words.flat_values)
    finally:
        tokenizer.out_type = usual
    return words.with_flat_values(pieces).merge_dims(1, 2)


def ids_of(tokenizer: Any, words: tf.RaggedTensor, unknown: int) -> tf.RaggedTensor:
    """The ids of pieces, int32; those that are not in the vocabulary get an id behind it.

    Args:
        tokenizer: the pieces' own.
        words: what ``words_of`` gave.
        unknown: how many ids there are for unknown words; a word's hash chooses. 0: all of them
            are ``UNK``.
    """
    ids = tokenizer.string_to_id(words.flat_values)
    if unknown:
        others = tf.strings.to_hash_bucket_fast(words.flat_values, unknown)
        others = tf.cast(others, tf.int32) + tf.cast(tokenizer.vocab_size(), tf.int32)
        ids = tf.where(ids == UNK, others, ids)
    return words.with_flat_values(ids)
