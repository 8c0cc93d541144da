"""The exported graph of captioning."""

from typing import Any

import tensorflow as tf

from regard.models.tasks.captioning.network import limits_of_images
from regard.models.tasks.image_decoding import check_batch, decode_images
from regard.models.tasks.served_model import OutputLengths, Row
from regard.models.tasks.served_text_output import ServedTextOutput


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

    def _limits_of(self, encoded: tf.Tensor) -> tf.Tensor:
        return limits_of_images(self._max_length).of_rows(encoded)

    def _row_options(self, source: tf.Tensor, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        # Sampling depends only on the pixels and the seed.
        return {"keys": tf.reduce_sum(tf.cast(encoded, tf.int32), axis=[1, 2, 3])}

    def raw_inputs(self, row: Row) -> dict[str, Any]:
        return {"image": row["image"][0]}
