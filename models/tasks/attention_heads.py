"""The attention of every head in an exported graph."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from regard.models.seq2seq import Seq2Seq

# The maximum number of weights in one output (half a gigabyte): it grows with the square of the
# lengths, for every head.
MAX_WEIGHTS = 2**27


def head_outputs(
    model: Seq2Seq, source: tf.Tensor, target: tf.Tensor, masks: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Return the weights of ``Seq2Seq.heads`` as ``<name>_heads``, in float32.

    Args:
        model: The trained model.
        source: The inputs of the model.
        target: The ids of the given output, ``[batch, target]``.
        masks: By name, which rows are not padding, ``[batch, length]``; padding rows are 0.

    Raises:
        InvalidArgumentError: There would be more than ``MAX_WEIGHTS`` numbers.
    """
    return {
        f"{name}_heads": _check_size(tf.cast(weights, tf.float32))
        * tf.cast(masks[name], tf.float32)[:, None, None, :, None]
        for name, weights in model.heads(source, target).items()
    }


def _check_size(weights: tf.Tensor) -> tf.Tensor:
    size = tf.size(weights, tf.int64)
    message = [f"more than {MAX_WEIGHTS:,} weights; send fewer or shorter rows. They are:", size]
    with tf.control_dependencies([tf.debugging.Assert(size <= MAX_WEIGHTS, message)]):
        return tf.identity(weights)
