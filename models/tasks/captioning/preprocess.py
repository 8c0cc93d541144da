"""The preprocessing of captioning: images of one size, and the tokens of captions."""

from typing import Any

import tensorflow as tf

from regard.models.tasks.captioning.description import CaptioningPreprocessingConfig
from regard.models.tasks.image_decoding import decode_images
from regard.models.tasks.preprocessing import Columns, Tokenizers, flat_values
from regard.models.tasks.text_preprocessing import TextOutputPreprocessing


class ImagePreprocessing(TextOutputPreprocessing):
    """Raw rows with an ``image`` and one or more ``caption``."""

    def transform(
        self, inputs: Columns, tokenizers: Tokenizers, settings: CaptioningPreprocessingConfig
    ) -> dict[str, Any]:
        """Return ``image``, PNGs of the model's size, and the tokens of the captions."""
        encoded = flat_values(inputs["image"])
        pixels = decode_images(encoded, settings.image.height, settings.image.width)
        images = encode_images(pixels)[:, None]
        return {"image": images, **self.target_features(inputs, tokenizers)}

    def lengths(self, features: Columns) -> tf.RaggedTensor:
        """Return the numbers of tokens of the captions, including EOS."""
        return self.text_lengths(features)


def encode_images(images: tf.Tensor) -> tf.Tensor:
    """Encode uint8 ``[batch, height, width, 3]`` as PNGs ``[batch]``, without loss."""
    return tf.map_fn(tf.io.encode_png, images, fn_output_signature=tf.TensorSpec([], tf.string))
