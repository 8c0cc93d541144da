"""What tasks have in common that read a text and write one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from models.decoders import DECODERS
from models.encoders import ENCODERS
from models.search import GreedySearch
from models.seq2seq import Seq2Seq
from models.serialization import by_name
from models.tasks import targets
from models.tasks.base import Answering, Task, policy_of
from models.tasks.served import Served, with_signature
from models.tasks.served_text import ServedText
from models.vocabulary import PAD


class TextToText(Task):
    """Sequence to sequence on text: the features ``source``, and one or more of ``target``.

    Attributes:
        answer: what the exported model calls what it writes.
    """

    answer: str

    def preprocess(
        self, inputs: Mapping[str, Any], tokenizers: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Text → ``source_ids``, ``target_ids`` and ``target_lengths`` (ragged int64)."""
        source = tokenizers["source"].tokenize(targets.values_of(inputs["source"]))
        return {
            "source_ids": tf.cast(source, tf.int64),
            **targets.target_features("target", tokenizers["target"], inputs["target"]),
        }

    def spread(self, features: Mapping[str, tf.Tensor]) -> dict[str, Any]:
        return targets.spread("target", features)

    def length(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The pieces of the longer side, EOS counted."""
        longest = tf.maximum(tf.size(features["source_ids"]), tf.size(features["target_ids"]))
        return longest + 1

    def is_complete(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Both sides have at least one piece."""
        source, target = tf.size(features["source_ids"]), tf.size(features["target_ids"])
        return (source > 0) & (target > 0)

    def model_inputs(self, features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """``source`` and ``target`` as int32 with EOS behind."""
        return {side: targets.with_end(features[f"{side}_ids"]) for side in ("source", "target")}

    def asked(
        self, features: Mapping[str, tf.Tensor], tokenizers: Mapping[str, Any]
    ) -> dict[str, Any]:
        ids = tf.cast(features["source_ids"], tf.int32)
        return {"source": tokenizers["source"].detokenize(ids).numpy()}

    def build(
        self, model: Mapping[str, Any], training: Mapping[str, Any], pieces: Mapping[str, int]
    ) -> Seq2Seq:
        policy = policy_of(training)
        common = {"embedding": model["embedding"], "dropout": model["dropout"], "dtype": policy}
        given, tied = model["pretrained"] or {}, model["tie_embeddings"] != "none"
        # Vectors that others have trained are of the right size, unless they score pieces too.
        scaled = {side: tied or not given.get(side) for side in ("source", "target")}
        encoder_settings, decoder_settings = dict(model["encoder"]), dict(model["decoder"])
        make_encoder = by_name("encoder", ENCODERS, encoder_settings.pop("type"))
        make_decoder = by_name("decoder", DECODERS, decoder_settings.pop("type"))
        encoder = make_encoder(
            pieces["source"], scale=scaled["source"], **encoder_settings, **common
        )
        decoder = make_decoder(
            pieces["target"],
            memory_depth=encoder.depth,
            final_depth=encoder.final_depth,
            attention=model["attention"],
            tied=tied,
            scale=scaled["target"],
            **decoder_settings,
            **common,
        )
        seq2seq = Seq2Seq(
            encoder,
            decoder,
            label_smoothing=training["label_smoothing"],
            share_embeddings=model["tie_embeddings"] == "all",
            reinforce=training["reinforce"],
            penalties=training["penalties"],
            dtype=policy,
        )
        seq2seq.build()
        return seq2seq

    def embeddings(self, model: Seq2Seq, key: str) -> tuple[Any, str]:
        return {"source": model.encoder, "target": model.decoder}[key].embedding, key

    def by_piece(self, model: Seq2Seq) -> list[tuple[Any, int, str]]:
        # A table that both sides share is named twice: they have one vocabulary.
        source = (model.encoder.embedding.table, 0, "source")
        return [source, *((weight, axis, "target") for weight, axis in model.decoder.by_piece)]

    def answering(
        self, model: Seq2Seq, tokenizers: Mapping[str, Any], config: Mapping[str, Any]
    ) -> Answering:
        find, search = GreedySearch(), config["search"]

        @with_signature([tf.TensorSpec([None, None], tf.int32)])
        def best(source: tf.Tensor) -> tf.Tensor:
            pieces = tf.reduce_sum(tf.cast(source != PAD, tf.float32), axis=1) - 1.0
            longest = tf.cast(pieces * search["max_length_factor"], tf.int32)
            return model.search(source, find, longest + search["max_length_offset"] + 1).ids[:, 0]

        return targets.answering(tokenizers["target"], best)

    def served(
        self, model: Seq2Seq, tokenizers: Mapping[str, Any], config: Mapping[str, Any]
    ) -> Served:
        source, target = tokenizers["source"], tokenizers["target"]
        module = ServedText(model, source, target, config["search"], self.answer)
        return module.served(self.description.name)
