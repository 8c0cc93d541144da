"""What captioning does with images and their captions, and the model it builds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from models.decoders import DECODERS
from models.encoders.convolutional import ConvolutionalEncoder
from models.search import GreedySearch
from models.seq2seq import Seq2Seq
from models.serialization import by_name
from models.tasks import targets
from models.tasks.base import Answering, Task, policy_of
from models.tasks.captioning import DESCRIPTION, images
from models.tasks.captioning.served import ServedCaptioner
from models.tasks.served import Served, with_signature


class Captioning(Task):
    """Images with one or more captions each."""

    description = DESCRIPTION

    def preprocess(
        self, inputs: Mapping[str, Any], tokenizers: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Encoded images → ``image``, PNGs of the model's size; captions → their pieces."""
        encoded = targets.values_of(inputs["image"])
        pixels = images.read(encoded, settings["height"], settings["width"])
        return {
            "image": images.write(pixels)[:, None],
            **targets.target_features("caption", tokenizers["caption"], inputs["caption"]),
        }

    def spread(self, features: Mapping[str, tf.Tensor]) -> dict[str, Any]:
        return targets.spread("caption", features)

    def length(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The pieces of the caption, EOS counted."""
        return tf.size(features["caption_ids"]) + 1

    def is_complete(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The caption has at least one piece."""
        return tf.size(features["caption_ids"]) > 0

    def model_inputs(self, features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """``source`` as uint8 ``[height, width, 3]``, ``target`` as int32 with EOS behind."""
        return {
            "source": tf.io.decode_png(tf.reshape(features["image"], []), channels=3),
            "target": targets.with_end(features["caption_ids"]),
        }

    def asked(
        self, features: Mapping[str, tf.Tensor], tokenizers: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {"image": tf.reshape(features["image"], []).numpy()}

    def build(
        self, model: Mapping[str, Any], training: Mapping[str, Any], pieces: Mapping[str, int]
    ) -> Seq2Seq:
        policy = policy_of(training)
        image, encoder_settings = model["image"], dict(model["encoder"])
        encoder_settings.pop("type")
        encoder = ConvolutionalEncoder(
            (image["height"], image["width"]),
            dropout=model["dropout"],
            dtype=policy,
            **encoder_settings,
        )
        decoder_settings = dict(model["decoder"])
        decoder = by_name("decoder", DECODERS, decoder_settings.pop("type"))(
            pieces["caption"],
            memory_depth=encoder.depth,
            final_depth=encoder.final_depth,
            attention=model["attention"],
            tied=model["tie_embeddings"] == "output",
            embedding=model["embedding"],
            dropout=model["dropout"],
            dtype=policy,
            **decoder_settings,
        )
        captioner = Seq2Seq(
            encoder,
            decoder,
            label_smoothing=training["label_smoothing"],
            reinforce=training["reinforce"],
            penalties=training["penalties"],
            dtype=policy,
        )
        captioner.build()
        return captioner

    def by_piece(self, model: Seq2Seq) -> list[tuple[Any, int, str]]:
        return [(weight, axis, "caption") for weight, axis in model.decoder.by_piece]

    def answering(
        self, model: Seq2Seq, tokenizers: Mapping[str, Any], config: Mapping[str, Any]
    ) -> Answering:
        find = GreedySearch()
        height, width = model.encoder.settings["size"]
        longest = int(config["search"]["max_length_offset"]) + 1

        @with_signature([tf.TensorSpec([None, height, width, 3], tf.uint8)])
        def best(pixels: tf.Tensor) -> tf.Tensor:
            return model.search(pixels, find, tf.fill([tf.shape(pixels)[0]], longest)).ids[:, 0]

        return targets.answering(tokenizers["caption"], best)

    def served(
        self, model: Seq2Seq, tokenizers: Mapping[str, Any], config: Mapping[str, Any]
    ) -> Served:
        module = ServedCaptioner(
            model, tokenizers["caption"], config["model"]["image"], config["search"]
        )
        return module.served(self.description.name)


TASK = Captioning()
