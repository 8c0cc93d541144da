"""Preprocessing, model and training interface of captioning."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from regard.models.encoders.convolutional import ConvolutionalEncoder
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.search import SearchLimits
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.base import Columns, Tokenizers, dtype_policy, flat_values
from regard.models.tasks.captioning.served import ServedCaptioner, decode_images, encode_images
from regard.models.tasks.captioning.settings import CaptioningModelConfig, CaptioningPreprocessing
from regard.models.tasks.seq2seq_task import TextOutputTask


class Captioning(TextOutputTask):
    """Images with one or more captions each."""

    served = ServedCaptioner
    fixed_inputs = ("source",)

    def preprocess(
        self, inputs: Columns, tokenizers: Tokenizers, settings: CaptioningPreprocessing
    ) -> dict[str, Any]:
        """Return ``image``, PNGs of the model's size, and the tokens of the captions."""
        encoded = flat_values(inputs["image"])
        pixels = decode_images(encoded, settings.image.height, settings.image.width)
        images = encode_images(pixels)[:, None]
        return {"image": images, **self.target_features(inputs, tokenizers)}

    def lengths(self, features: Columns) -> tf.RaggedTensor:
        """Return the numbers of tokens of the captions, including EOS."""
        return self.text_lengths(features)

    def source_input(self, features: Columns) -> tf.Tensor:
        """Return the images as uint8 ``[batch, height, width, 3]``."""
        images, spec = flat_values(features["image"]), tf.TensorSpec([None, None, 3], tf.uint8)
        return tf.map_fn(lambda png: tf.io.decode_png(png, 3), images, fn_output_signature=spec)

    def raw_inputs(self, features: Columns, tokenizers: Tokenizers) -> dict[str, Any]:
        return {"image": tf.reshape(features["image"], []).numpy()}

    def build(
        self,
        model: CaptioningModelConfig,
        training: TrainingConfig,
        vocabulary_sizes: Mapping[str, int],
    ) -> Seq2Seq:
        encoder = ConvolutionalEncoder(
            (model.image.height, model.image.width),
            dropout=model.dropout,
            dtype=dtype_policy(training),
            **model.encoder.to_kwargs(),
        )
        return self.build_seq2seq(encoder, model, training, vocabulary_sizes)

    def source_spec(self, model: Seq2Seq) -> tf.TensorSpec:
        return tf.TensorSpec([None, *model.encoder.settings["size"], 3], tf.uint8)

    def max_lengths(self, source: tf.Tensor, search: SearchLimits) -> tf.Tensor:
        return tf.fill([tf.shape(source)[0]], search.max_length_offset)
