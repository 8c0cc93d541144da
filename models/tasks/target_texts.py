"""Texts that a model learns to write: tokenized, expanded to one per row, and detokenized."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from regard.models.tasks.base import DecodeFn
from regard.models.vocabulary import EOS, PAD


def flat_values(column: Any) -> tf.Tensor:
    """Return all values of a dense or sparse raw feature; ``[batch]`` with one value per row."""
    values = column.values if isinstance(column, tf.SparseTensor) else column
    return tf.reshape(values, [-1])


def target_features(name: str, tokenizer: Any, column: Any) -> dict[str, Any]:
    """Tokenize all texts of each row.

    Returns:
        ``<name>_ids`` ``[batch, (tokens of all texts)]`` and ``<name>_lengths`` ``[batch,
        (texts)]``, ragged int64.
    """
    sparse = isinstance(column, tf.SparseTensor)
    texts = tf.RaggedTensor.from_sparse(column) if sparse else tf.RaggedTensor.from_tensor(column)
    tokens = tf.cast(tokenizer.tokenize(flat_values(column)), tf.int64)
    # The rows' boundaries among all texts, and with them among all tokens.
    splits = texts.row_splits
    ends = tf.gather(tokens.row_splits, splits)
    return {
        f"{name}_ids": tf.RaggedTensor.from_row_splits(tokens.values, ends),
        f"{name}_lengths": tf.RaggedTensor.from_row_splits(tokens.row_lengths(), splits),
    }


def expand_targets(name: str, features: Mapping[str, tf.Tensor]) -> dict[str, Any]:
    """Repeat a transformed row once for each of its texts."""
    lengths = features[f"{name}_lengths"]
    texts = tf.RaggedTensor.from_row_lengths(features[f"{name}_ids"], lengths)
    count = tf.size(lengths)
    repeated = {
        key: tf.repeat(value[None], count, axis=0)
        for key, value in features.items()
        if key not in (f"{name}_ids", f"{name}_lengths")
    }
    return {**repeated, f"{name}_ids": texts}


def append_eos(ids: tf.Tensor) -> tf.Tensor:
    """Return ids ``[length]`` as int32 with EOS, ``[length + 1]``."""
    return tf.concat([tf.cast(ids, tf.int32), [EOS]], 0)


def text_decode_fn(tokenizer: Any, search: Callable[[tf.Tensor], tf.Tensor]) -> DecodeFn:
    """Return a function that decodes batches of ``source`` and ``target``.

    Args:
        tokenizer: The tokenizer of the targets.
        search: Returns the ids of the outputs for a batch of ``source``.
    """

    def decode(batch: Mapping[str, tf.Tensor]) -> tuple[list[str], list[list[str]]]:
        references = detokenize(tokenizer, batch["target"])
        return detokenize(tokenizer, search(batch["source"])), [[text] for text in references]

    return decode


def detokenize(tokenizer: Any, ids: tf.Tensor) -> list[str]:
    """Return padded ids ``[batch, length]`` as texts."""
    tokens = tf.ragged.boolean_mask(ids, (ids != PAD) & (ids != EOS))
    return [text.decode("utf-8") for text in tokenizer.detokenize(tokens).numpy()]
