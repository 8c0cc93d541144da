"""What every head of every layer of a Transformer looks at, as outputs of a signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from models.seq2seq import Seq2Seq
from models.vocabulary import BOS

# Numbers of one output: half a gigabyte. They grow with the square of the lengths, for every head.
MOST = 2**27
# What the decoder's self-attention looks at: the beginning, and the pieces before its own.
READ = "read_pieces"


def weights(
    model: Seq2Seq, source: tf.Tensor, target: tf.Tensor, rows: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """The weights of ``Seq2Seq.heads`` as ``<name>_heads``, in float32.

    Args:
        model: the trained model.
        source: what it reads.
        target: the ids of what it is taken to write, ``[batch, target]``.
        rows: for each name which of its rows are real, ``[batch, length]``; the others are zero.

    Raises:
        InvalidArgumentError: there would be more than ``MOST`` numbers.
    """
    return {
        f"{name}_heads": _bounded(tf.cast(found, tf.float32))
        * tf.cast(rows[name], tf.float32)[:, None, None, :, None]
        for name, found in model.heads(source, target).items()
    }


def _bounded(found: tf.Tensor) -> tf.Tensor:
    numbers = tf.size(found, tf.int64)
    told = [f"more than {MOST:,} weights; ask fewer or shorter rows. They are:", numbers]
    with tf.control_dependencies([tf.debugging.Assert(numbers <= MOST, told)]):
        return tf.identity(found)


def read_ids(target: tf.Tensor) -> tf.Tensor:
    """What the decoder has read where it writes each piece: BOS, then the pieces before."""
    first = tf.fill(tf.shape(target[:, :1]), tf.constant(BOS, target.dtype))
    return tf.concat([first, target[:, :-1]], axis=1)


def told(looks: list[dict[str, str]]) -> dict[str, Any] | None:
    """What a contract says of the signature ``heads``; None where there are no heads."""
    return {"signature": "heads", "looks": looks} if looks else None
