"""Text-to-text tasks: translation and summarisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from regard.models.decoders import DECODERS
from regard.models.encoders import ENCODERS
from regard.models.search import GreedySearch
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.search import SearchLimits
from regard.models.settings.text_to_text import TextToTextModelConfig
from regard.models.settings.training import TrainingConfig
from regard.models.tasks import target_texts
from regard.models.tasks.base import DecodeFn, Task, dtype_policy
from regard.models.tasks.description import Description
from regard.models.tasks.served_model import ServedModel, with_signature
from regard.models.tasks.served_text import ServedText
from regard.models.vocabulary import PAD


class TextToText(Task):
    """A sequence-to-sequence task with the features ``source`` and one or more ``target``.

    Args:
        description: The description of the task.
        output: The name of the exported model's output.
    """

    def __init__(self, description: Description, output: str):
        self.description = description
        self.output = output

    def preprocess(
        self, inputs: Mapping[str, Any], tokenizers: Mapping[str, Any], settings: Any
    ) -> dict[str, Any]:
        """Return ``source_ids``, ``target_ids`` and ``target_lengths`` (ragged int64)."""
        source = tokenizers["source"].tokenize(target_texts.flat_values(inputs["source"]))
        return {
            "source_ids": tf.cast(source, tf.int64),
            **target_texts.target_features("target", tokenizers["target"], inputs["target"]),
        }

    def expand(self, features: Mapping[str, tf.Tensor]) -> dict[str, Any]:
        return target_texts.expand_targets("target", features)

    def length(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Return the number of tokens of the longer side, including EOS."""
        longest = tf.maximum(tf.size(features["source_ids"]), tf.size(features["target_ids"]))
        return longest + 1

    def is_complete(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Return whether both sides have a token."""
        source, target = tf.size(features["source_ids"]), tf.size(features["target_ids"])
        return (source > 0) & (target > 0)

    def model_inputs(self, features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Return ``source`` and ``target`` as int32 with EOS."""
        sides = ("source", "target")
        return {side: target_texts.append_eos(features[f"{side}_ids"]) for side in sides}

    def raw_inputs(
        self, features: Mapping[str, tf.Tensor], tokenizers: Mapping[str, Any]
    ) -> dict[str, Any]:
        ids = tf.cast(features["source_ids"], tf.int32)
        return {"source": tokenizers["source"].detokenize(ids).numpy()}

    def build(
        self,
        model: TextToTextModelConfig,
        training: TrainingConfig,
        vocabulary_sizes: Mapping[str, int],
    ) -> Seq2Seq:
        policy = dtype_policy(training)
        common = {"embedding": model.embedding, "dropout": model.dropout, "dtype": policy}
        files = model.pretrained.files() if model.pretrained else {}
        tied = model.tie_embeddings != "none"
        # Pretrained vectors already have the right size, unless they also score tokens.
        scale = {side: tied or side not in files for side in ("source", "target")}
        encoder = ENCODERS[model.encoder.type](
            vocabulary_sizes["source"],
            scale=scale["source"],
            **model.encoder.to_kwargs(),
            **common,
        )
        decoder = DECODERS[model.decoder.type](
            vocabulary_sizes["target"],
            memory_depth=encoder.depth,
            final_depth=encoder.final_depth,
            attention=model.attention.to_kwargs() if model.attention else None,
            tied=tied,
            scale=scale["target"],
            **model.decoder.to_kwargs(),
            **common,
        )
        seq2seq = Seq2Seq(
            encoder,
            decoder,
            label_smoothing=training.label_smoothing,
            share_embeddings=model.tie_embeddings == "all",
            reinforce=training.reinforce.to_kwargs(),
            penalties=training.penalties.to_kwargs(),
            dtype=policy,
        )
        seq2seq.build()
        return seq2seq

    def embeddings(self, model: Seq2Seq, key: str) -> tuple[Any, str]:
        return {"source": model.encoder, "target": model.decoder}[key].embedding, key

    def vocab_weights(self, model: Seq2Seq) -> list[tuple[Any, int, str]]:
        # A table that both sides share is listed twice: they have one vocabulary.
        source = (model.encoder.embedding.table, 0, "source")
        return [source, *((weight, axis, "target") for weight, axis in model.decoder.vocab_weights)]

    def decode_fn(
        self,
        model: Seq2Seq,
        tokenizers: Mapping[str, Any],
        settings: TextToTextModelConfig,
        search: SearchLimits,
    ) -> DecodeFn:
        greedy = GreedySearch()

        @with_signature([tf.TensorSpec([None, None], tf.int32)])
        def decode(source: tf.Tensor) -> tf.Tensor:
            tokens = tf.reduce_sum(tf.cast(source != PAD, tf.float32), axis=1) - 1.0
            limits = tf.cast(tokens * search.max_length_factor, tf.int32)
            return model.search(source, greedy, limits + search.max_length_offset + 1).ids[:, 0]

        return target_texts.text_decode_fn(tokenizers["target"], decode)

    def served_model(
        self,
        model: Seq2Seq,
        tokenizers: Mapping[str, Any],
        settings: TextToTextModelConfig,
        search: SearchLimits,
    ) -> ServedModel:
        module = ServedText(model, tokenizers["source"], tokenizers["target"], search, self.output)
        return module.served_model(self.description.name)
