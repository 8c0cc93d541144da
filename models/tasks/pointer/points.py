"""Points as a model reads them: the same in training and in what is served."""

from __future__ import annotations

import tensorflow as tf


def normalised(points: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Each row moved and scaled so that its points just fit between -1 and 1.

    Both coordinates are scaled alike, so what is an angle or a ratio of distances stays. A row
    whose points all lie in one place is only moved there.

    Args:
        points: ``[batch, n, 2]``; what stands behind a row's points is not looked at.
        lengths: the number of points of each row, ``[batch]``.

    Returns:
        ``[batch, n, 2]``, 0 behind a row's points.
    """
    real = tf.sequence_mask(lengths, tf.shape(points)[1])[:, :, None]
    low = tf.reduce_min(tf.where(real, points, tf.float32.max), axis=1, keepdims=True)
    high = tf.reduce_max(tf.where(real, points, tf.float32.min), axis=1, keepdims=True)
    # Halves first: the sum of two great numbers may be none.
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    half = tf.reduce_max(half, axis=2, keepdims=True)
    moved = (points - middle) / tf.where(half > 0, half, 1.0)
    return tf.where(real, moved, 0.0)


def as_read(points: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """(x, y, 1) for each point and zeros behind them: ``[batch, n, 2]`` → ``[batch, n, 3]``."""
    real = tf.sequence_mask(lengths, tf.shape(points)[1])[:, :, None]
    return tf.concat([tf.where(real, points, 0.0), tf.cast(real, tf.float32)], axis=2)
