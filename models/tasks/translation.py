"""Translation: a sentence in, a sentence out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from models.decoders import DECODERS
from models.encoders import ENCODERS
from models.search import GreedySearch
from models.seq2seq import Seq2Seq
from models.serialization import by_name
from models.tasks.served_text import ServedText
from models.vocabulary import EOS, PAD


class Translation:
    """Sequence to sequence on text: translation, normalisation, and whatever else is pairs."""

    name = "translation"
    features = ("source", "target")
    text_features = ("source", "target")
    inputs = ("source",)
    reference = "target"

    def preprocess(
        self, inputs: Mapping[str, Any], tokenizers: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Text → ``source_ids``, ``target_ids`` (ragged int64) and their lengths."""
        outputs: dict[str, Any] = {}
        for feature in self.text_features:
            column = inputs[feature]
            text = column.values if isinstance(column, tf.SparseTensor) else column
            ids = tf.cast(tokenizers[feature].tokenize(tf.reshape(text, [-1])), tf.int64)
            outputs[f"{feature}_ids"] = ids
            outputs[f"{feature}_length"] = ids.row_lengths()
        return outputs

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
        return {
            side: tf.concat([tf.cast(features[f"{side}_ids"], tf.int32), [EOS]], 0)
            for side in ("source", "target")
        }

    def build(
        self, model: Mapping[str, Any], training: Mapping[str, Any], pieces: Mapping[str, int]
    ) -> Seq2Seq:
        policy = keras.DTypePolicy(training["precision"])
        common = {"embedding": model["embedding"], "dropout": model["dropout"], "dtype": policy}
        encoder_settings, decoder_settings = dict(model["encoder"]), dict(model["decoder"])
        make_encoder = by_name("encoder", ENCODERS, encoder_settings.pop("type"))
        make_decoder = by_name("decoder", DECODERS, decoder_settings.pop("type"))
        encoder = make_encoder(pieces["source"], **encoder_settings, **common)
        decoder = make_decoder(
            pieces["target"],
            memory_depth=encoder.depth,
            final_depth=encoder.final_depth,
            attention=model["attention"],
            tied=model["tie_embeddings"] != "none",
            **decoder_settings,
            **common,
        )
        seq2seq = Seq2Seq(
            encoder,
            decoder,
            label_smoothing=training["label_smoothing"],
            share_embeddings=model["tie_embeddings"] == "all",
            reinforce=training["reinforce"],
            dtype=policy,
        )
        seq2seq.build()
        return seq2seq

    def validation(
        self, model: keras.Model, tokenizers: Mapping[str, Any], search: Mapping[str, Any]
    ) -> Callable[[Mapping[str, tf.Tensor]], tuple[list[str], list[str]]]:
        find, tokenizer = GreedySearch(), tokenizers["target"]

        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
        def best(source: tf.Tensor) -> tf.Tensor:
            pieces = tf.reduce_sum(tf.cast(source != PAD, tf.float32), axis=1) - 1.0
            longest = tf.cast(pieces * search["max_length_factor"], tf.int32)
            return model.search(source, find, longest + search["max_length_offset"] + 1).ids[:, 0]

        def texts(ids: tf.Tensor) -> list[str]:
            inner = tf.ragged.boolean_mask(ids, (ids != PAD) & (ids != EOS))
            return [text.decode("utf-8") for text in tokenizer.detokenize(inner).numpy()]

        return lambda batch: (texts(best(batch["source"])), texts(batch["target"]))

    def served(
        self, model: keras.Model, tokenizers: Mapping[str, Any], search: Mapping[str, Any]
    ) -> tuple[tf.Module, dict[str, Callable[..., Any]]]:
        module = ServedText(model, tokenizers["source"], tokenizers["target"], search)
        return module, module.signatures()


TASK = Translation()
