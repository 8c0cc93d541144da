"""The exported graph of captioning, and the decoding of images."""

from typing import Any

import tensorflow as tf

from regard.models.tasks.image_decoding import check_batch, decode_image
from regard.models.tasks.served_model import OutputLengths
from regard.models.tasks.served_text import ServedTextOutput


def decode_images(encoded: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """Decode images ``[batch]`` to uint8 ``[batch, height, width, 3]``.

    JPEG, PNG and BMP. An image of another aspect ratio is stretched, so
    that each cell of a grid always covers the same part of the image.

    Raises:
        tf.errors.InvalidArgumentError: An image is invalid, truncated or too large (when the graph
            runs).
    """

    def decode(content: tf.Tensor) -> tf.Tensor:
        resized = tf.image.resize(decode_image(content), [height, width], antialias=True)
        return tf.cast(tf.clip_by_value(tf.round(resized), 0.0, 255.0), tf.uint8)

    spec = tf.TensorSpec([height, width, 3], tf.uint8)
    return tf.map_fn(decode, encoded, fn_output_signature=spec)


def encode_images(images: tf.Tensor) -> tf.Tensor:
    """Encode uint8 ``[batch, height, width, 3]`` as PNGs ``[batch]``, without loss."""
    return tf.map_fn(tf.io.encode_png, images, fn_output_signature=tf.TensorSpec([], tf.string))


class ServedCaptioner(ServedTextOutput):
    """The graph of captioning, with the decoding of images."""

    prefix = ""
    source_outputs: OutputLengths = {}
    source_labels = "image"
    source_lengths = [None, None]

    def contract(self) -> dict[str, Any]:
        return {**super().contract(), "size": None}

    def _encode(self, source: tf.Tensor) -> tuple[tf.Tensor, None, Any]:
        size = self._settings.image
        images = decode_images(check_batch(source), size.height, size.width)
        return images, None, self._tokenizer

    def _shape_weights(self, weights: tf.Tensor) -> tf.Tensor:
        """Reshape ``[..., cells]`` to ``[..., rows, columns]`` of the image."""
        shape = tf.concat([tf.shape(weights)[:-1], self._model.encoder.grid], axis=0)
        return tf.reshape(weights, shape)

    def _row_options(self, source: tf.Tensor, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        # Sampling depends only on the image and the seed.
        sums = tf.reduce_sum(tf.cast(encoded, tf.int32), axis=[1, 2, 3])
        return {"limits": tf.fill(tf.shape(sums), self._max_length + 1), "keys": sums}
