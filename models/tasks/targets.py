"""Texts that a model is to write: several of a row one after another, and back to texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from models.tasks.base import Answering
from models.vocabulary import EOS, PAD


def values_of(column: Any) -> tf.Tensor:
    """All values of a raw feature, dense or sparse, one after another; ``[batch]`` of one each."""
    values = column.values if isinstance(column, tf.SparseTensor) else column
    return tf.reshape(values, [-1])


def target_features(name: str, tokenizer: Any, column: Any) -> dict[str, Any]:
    """The pieces of all texts of a row, and how many each of them has.

    Returns:
        ``<name>_ids`` ``[batch, (pieces of all)]`` and ``<name>_lengths`` ``[batch, (texts)]``,
        ragged int64.
    """
    sparse = isinstance(column, tf.SparseTensor)
    counts = tf.RaggedTensor.from_sparse(column) if sparse else tf.RaggedTensor.from_tensor(column)
    pieces = tf.cast(tokenizer.tokenize(values_of(column)), tf.int64)
    # Where the texts of a row begin and end among all, and with them their pieces.
    splits = counts.row_splits
    ends = tf.gather(pieces.row_splits, splits)
    return {
        f"{name}_ids": tf.RaggedTensor.from_row_splits(pieces.values, ends),
        f"{name}_lengths": tf.RaggedTensor.from_row_splits(pieces.row_lengths(), splits),
    }


def spread(name: str, features: Mapping[str, tf.Tensor]) -> dict[str, Any]:
    """A transformed row once for each of its texts; all else is the same in each."""
    lengths = features[f"{name}_lengths"]
    texts = tf.RaggedTensor.from_row_lengths(features[f"{name}_ids"], lengths)
    count = tf.size(lengths)
    others = {
        key: tf.repeat(value[None], count, axis=0)
        for key, value in features.items()
        if key not in (f"{name}_ids", f"{name}_lengths")
    }
    return {**others, f"{name}_ids": texts}


def with_end(ids: tf.Tensor) -> tf.Tensor:
    """Pieces ``[length]`` as int32 with EOS behind."""
    return tf.concat([tf.cast(ids, tf.int32), [EOS]], 0)


def answering(tokenizer: Any, best: Callable[[tf.Tensor], tf.Tensor]) -> Answering:
    """What answers batches of ``source`` and ``target``; ``best`` gives the ids of answers."""

    def answer(batch: Mapping[str, tf.Tensor]) -> tuple[list[str], list[list[str]]]:
        wanted = texts_of(tokenizer, batch["target"])
        return texts_of(tokenizer, best(batch["source"])), [[text] for text in wanted]

    return answer


def texts_of(tokenizer: Any, ids: tf.Tensor) -> list[str]:
    """Padded pieces ``[batch, length]`` as texts."""
    inner = tf.ragged.boolean_mask(ids, (ids != PAD) & (ids != EOS))
    return [text.decode("utf-8") for text in tokenizer.detokenize(inner).numpy()]
