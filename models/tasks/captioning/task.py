"""Preprocessing, model and training interface of captioning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from regard.models.decoders import DECODERS
from regard.models.encoders.convolutional import ConvolutionalEncoder
from regard.models.search import GreedySearch
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.search import SearchLimits
from regard.models.settings.training import TrainingConfig
from regard.models.tasks import target_texts
from regard.models.tasks.base import DecodeFn, Task, dtype_policy
from regard.models.tasks.captioning import DESCRIPTION
from regard.models.tasks.captioning.served import ServedCaptioner, decode_images, encode_images
from regard.models.tasks.captioning.settings import CaptioningModelConfig, CaptioningPreprocessing
from regard.models.tasks.served_model import ServedModel, with_signature


class Captioning(Task):
    """Images with one or more captions each."""

    description = DESCRIPTION

    def preprocess(
        self,
        inputs: Mapping[str, Any],
        tokenizers: Mapping[str, Any],
        settings: CaptioningPreprocessing,
    ) -> dict[str, Any]:
        """Return ``image``, PNGs of the model's size, and the tokens of the captions."""
        encoded = target_texts.flat_values(inputs["image"])
        pixels = decode_images(encoded, settings.image.height, settings.image.width)
        return {
            "image": encode_images(pixels)[:, None],
            **target_texts.target_features("caption", tokenizers["caption"], inputs["caption"]),
        }

    def expand(self, features: Mapping[str, tf.Tensor]) -> dict[str, Any]:
        return target_texts.expand_targets("caption", features)

    def length(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Return the number of tokens of the caption, including EOS."""
        return tf.size(features["caption_ids"]) + 1

    def is_complete(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Return whether the caption has a token."""
        return tf.size(features["caption_ids"]) > 0

    def model_inputs(self, features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Return ``source`` as uint8 ``[height, width, 3]`` and ``target`` as int32 with EOS."""
        return {
            "source": tf.io.decode_png(tf.reshape(features["image"], []), channels=3),
            "target": target_texts.append_eos(features["caption_ids"]),
        }

    def raw_inputs(
        self, features: Mapping[str, tf.Tensor], tokenizers: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {"image": tf.reshape(features["image"], []).numpy()}

    def build(
        self,
        model: CaptioningModelConfig,
        training: TrainingConfig,
        vocabulary_sizes: Mapping[str, int],
    ) -> Seq2Seq:
        policy = dtype_policy(training)
        encoder = ConvolutionalEncoder(
            (model.image.height, model.image.width),
            dropout=model.dropout,
            dtype=policy,
            **model.encoder.to_kwargs(),
        )
        decoder = DECODERS[model.decoder.type](
            vocabulary_sizes["caption"],
            memory_depth=encoder.depth,
            final_depth=encoder.final_depth,
            attention=model.attention.to_kwargs() if model.attention else None,
            tied=model.tie_embeddings == "output",
            embedding=model.embedding,
            dropout=model.dropout,
            dtype=policy,
            **model.decoder.to_kwargs(),
        )
        captioner = Seq2Seq(
            encoder,
            decoder,
            label_smoothing=training.label_smoothing,
            reinforce=training.reinforce.to_kwargs(),
            penalties=training.penalties.to_kwargs(),
            dtype=policy,
        )
        captioner.build()
        return captioner

    def vocab_weights(self, model: Seq2Seq) -> list[tuple[Any, int, str]]:
        return [(weight, axis, "caption") for weight, axis in model.decoder.vocab_weights]

    def decode_fn(
        self,
        model: Seq2Seq,
        tokenizers: Mapping[str, Any],
        settings: CaptioningModelConfig,
        search: SearchLimits,
    ) -> DecodeFn:
        greedy = GreedySearch()
        height, width = model.encoder.settings["size"]
        limit = search.max_length_offset + 1

        @with_signature([tf.TensorSpec([None, height, width, 3], tf.uint8)])
        def decode(pixels: tf.Tensor) -> tf.Tensor:
            return model.search(pixels, greedy, tf.fill([tf.shape(pixels)[0]], limit)).ids[:, 0]

        return target_texts.text_decode_fn(tokenizers["caption"], decode)

    def served_model(
        self,
        model: Seq2Seq,
        tokenizers: Mapping[str, Any],
        settings: CaptioningModelConfig,
        search: SearchLimits,
    ) -> ServedModel:
        module = ServedCaptioner(model, tokenizers["caption"], settings.image, search)
        return module.served_model(self.description.name)
