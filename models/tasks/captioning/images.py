"""Images as bytes, and as numbers."""

from __future__ import annotations

import tensorflow as tf


def read(encoded: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """Encoded images ``[batch]`` → uint8 ``[batch, height, width, 3]``.

    JPEG, PNG, GIF (its first picture) and BMP. An image of another shape is stretched, so that
    each cell of a grid over it stands for the same part of the file's picture.

    Raises:
        tf.errors.InvalidArgumentError: when run, if one is no image or cut off.
    """

    def one(content: tf.Tensor) -> tf.Tensor:
        image = tf.io.decode_image(content, channels=3, expand_animations=False)
        image.set_shape([None, None, 3])
        resized = tf.image.resize(image, [height, width], antialias=True)
        return tf.cast(tf.clip_by_value(tf.round(resized), 0.0, 255.0), tf.uint8)

    spec = tf.TensorSpec([height, width, 3], tf.uint8)
    return tf.map_fn(one, encoded, fn_output_signature=spec)


def write(images: tf.Tensor) -> tf.Tensor:
    """uint8 ``[batch, height, width, 3]`` → PNGs ``[batch]``, which lose nothing."""
    return tf.map_fn(tf.io.encode_png, images, fn_output_signature=tf.TensorSpec([], tf.string))
