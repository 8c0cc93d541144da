"""The preprocessing of captioning: images of one size, and the tokens of captions."""

from typing import Any

import tensorflow as tf

from regard.models.tasks.captioning.description import CaptioningPreprocessingConfig
from regard.models.tasks.image_decoding import decode_images
from regard.models.tasks.preprocessing import Columns, Tokenizers, single_values
from regard.models.tasks.text_preprocessing import TextOutputPreprocessing


class ImagePreprocessing(TextOutputPreprocessing):
    """Raw rows with an ``image`` and one or more ``caption``."""

    def transform(
        self, inputs: Columns, tokenizers: Tokenizers, settings: CaptioningPreprocessingConfig
    ) -> dict[str, Any]:
        """Return ``image``, PNGs of the model's size, and the tokens of the captions.

        A row without an image has an empty one.
        """
        encoded = single_values(inputs, "image")
        rows = tf.where(encoded != "")
        pixels = decode_images(
            tf.gather_nd(encoded, rows), settings.image.height, settings.image.width
        )
        images = tf.tensor_scatter_nd_update(encoded, rows, encode_images(pixels))
        return {"image": images[:, None], **self.target_features(inputs, tokenizers)}

    def lengths(self, features: Columns) -> tf.RaggedTensor:
        """Return the numbers of tokens of the captions, including EOS; 0 without an image."""
        has_image = tf.reshape(features["image"], [-1]) != ""
        return self.text_lengths(features, tf.cast(has_image, tf.int32))


def encode_images(images: tf.Tensor) -> tf.Tensor:
    """Encode uint8 ``[batch, height, width, 3]`` as PNGs ``[batch]``, without loss."""
    return tf.map_fn(tf.io.encode_png, images, fn_output_signature=tf.TensorSpec([], tf.string))
