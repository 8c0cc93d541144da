"""Points as the model receives them, in the Transform graph and in the exported graph."""

import tensorflow as tf


def normalize_points(points: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Move and scale each row so that its points just fit between -1 and 1.

    All coordinates are scaled by the same factor, which keeps angles and ratios of distances. A
    row whose points are all equal is only moved.

    Args:
        points: ``[batch, n, dimensions]``; values after a row's points do not matter.
        lengths: The number of points of each row, ``[batch]``.

    Returns:
        ``[batch, n, dimensions]``, 0 after a row's points.
    """
    mask = tf.sequence_mask(lengths, tf.shape(points)[1])[:, :, None]
    low = tf.reduce_min(tf.where(mask, points, tf.float32.max), axis=1, keepdims=True)
    high = tf.reduce_max(tf.where(mask, points, tf.float32.min), axis=1, keepdims=True)
    # Halves first: the sum of two large numbers may overflow.
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    half = tf.reduce_max(half, axis=2, keepdims=True)
    centered = (points - middle) / tf.where(half > 0, half, 1.0)
    return tf.where(mask, centered, 0.0)


def mark_points(points: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Return (x, y, ..., 1) for each point, then zeros: a last dimension that is larger by 1."""
    mask = tf.sequence_mask(lengths, tf.shape(points)[1])[:, :, None]
    return tf.concat([tf.where(mask, points, 0.0), tf.cast(mask, tf.float32)], axis=2)
