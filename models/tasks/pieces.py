"""Texts as the pieces that a served model reads: how many, and what becomes of the rest."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from models.vocabulary import EOS, PAD


def read_pieces(
    tokenizer: Any, texts: tf.Tensor, limit: int, complaint: str | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Texts ``[batch]`` → their ids with EOS behind, and how much was not read.

    Args:
        tokenizer: of these texts (``tensorflow_text``).
        texts: UTF-8.
        limit: the most pieces that are read of one.
        complaint: what is said of longer ones, which are then refused; None: they are cut.

    Returns:
        The ids ``[batch, longest]``, int32, padded, and how many pieces were cut off ``[batch]``.

    Raises:
        InvalidArgumentError: a text is longer, and there is a complaint.
    """
    ids = tf.cast(tokenizer.tokenize(texts), tf.int32)
    lengths = tf.cast(ids.row_lengths(), tf.int32)
    cut = tf.maximum(lengths - limit, 0)
    if complaint is not None:
        message = f"{complaint}; the lengths of all that were sent:"
        check = tf.debugging.Assert(tf.reduce_all(cut == 0), [message, lengths], summarize=20)
        with tf.control_dependencies([check]):
            cut = tf.identity(cut)
            ids = ids.with_values(tf.identity(ids.values))
    else:
        ids = ids[:, :limit]
    ends = tf.fill([tf.shape(texts)[0], 1], EOS)
    padded = tf.concat([ids, ends], axis=1).to_tensor(PAD)
    # An empty request gets a column too: a loop over no steps gives nothing to stack.
    none = tf.cast(tf.shape(padded)[1] == 0, tf.int32)
    return tf.pad(padded, [[0, 0], [0, none]], constant_values=PAD), cut


def counts(ids: tf.Tensor) -> tf.Tensor:
    """How many pieces are no padding, ``[batch]``."""
    return tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=1)
