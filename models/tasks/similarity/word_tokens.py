"""The words of sentences and their ids, in the Transform graph and in the exported graph."""

from typing import Any

import tensorflow as tf

from regard.models.tasks.copy_tokenizer import string_tokens
from regard.models.vocabulary import UNK


def split_words(tokenizer: Any, text: tf.Tensor) -> tf.RaggedTensor:
    """Return the tokens of texts ``[batch]`` as strings ``[batch, (tokens)]``."""
    # Word by word: SentencePiece would join adjacent unknown words of a sentence.
    words = tf.strings.split(text)
    tokens = string_tokens(tokenizer, words.flat_values, split=False)
    return words.with_flat_values(tokens).merge_dims(1, 2)


def word_ids(tokenizer: Any, words: tf.RaggedTensor, oov_buckets: int) -> tf.RaggedTensor:
    """Return the ids of tokens, int32; unknown ones get ids after those of the vocabulary.

    Args:
        tokenizer: The tokenizer of the tokens.
        words: The result of ``split_words``.
        oov_buckets: The number of ids for unknown words, selected by hash; 0: all are ``UNK``.
    """
    ids = tokenizer.string_to_id(words.flat_values)
    if oov_buckets:
        hashed = tf.strings.to_hash_bucket_fast(words.flat_values, oov_buckets)
        hashed = tf.cast(hashed, tf.int32) + tf.cast(tokenizer.vocab_size(), tf.int32)
        ids = tf.where(ids == UNK, hashed, ids)
    return words.with_flat_values(ids)
