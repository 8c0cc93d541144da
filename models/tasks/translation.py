"""Translation: a sentence in, a sentence out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from models.decoders import DECODERS
from models.encoders import ENCODERS
from models.search import SEARCHES, Hypotheses
from models.seq2seq import Seq2Seq
from models.serialization import by_name
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
            **decoder_settings,
            **common,
        )
        smoothing = training["label_smoothing"]
        seq2seq = Seq2Seq(encoder, decoder, label_smoothing=smoothing, dtype=policy)
        seq2seq.build()
        return seq2seq

    def served(
        self, model: keras.Model, tokenizers: Mapping[str, Any], search: Mapping[str, Any]
    ) -> tuple[tf.Module, dict[str, Callable[..., Any]]]:
        module = ServedTranslation(model, tokenizers["source"], tokenizers["target"], search)
        return module, {"serving_default": module.translate, "align": module.align}


class ServedTranslation(tf.Module):
    """Raw text in, raw text out: what TensorFlow Serving runs.

    Args:
        model: the trained model, in float32.
        source_tokenizer: the tokenizer of the source side (``tensorflow_text``).
        target_tokenizer: that of the target side.
        search: the YAML's section ``search``.
    """

    def __init__(
        self,
        model: Seq2Seq,
        source_tokenizer: Any,
        target_tokenizer: Any,
        search: Mapping[str, Any],
    ):
        super().__init__(name="translation")
        self._model = model
        # The SavedModel keeps what hangs on the module: the variables and the tokenizers.
        self.weights = [weight.value for weight in model.weights]
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        settings = dict(search)
        self._limits = {
            name: settings.pop(name)
            for name in ("max_length_factor", "max_length_offset", "max_source_length")
        }
        self._search = by_name("search", SEARCHES, settings.pop("type"))(**settings)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
    def translate(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts ``[batch]`` → ``translation`` ``[batch]`` and ``score`` ``[batch]``.

        The score is the natural logarithm of the probability of the translation.
        """
        return self._best(self._find(self._source_ids(source)))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
    def align(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """As ``translate``, with the pieces of both sides and where the model looked.

        ``alignment`` is ``[batch, target, source]``; row t of an example has its weight on the
        first ``source_length`` columns, and rows from ``target_length`` on are padding. Both
        lengths count the end of sentence, which is a piece that can be looked at too.
        """
        source_ids = self._source_ids(source)
        found = self._find(source_ids)
        target_ids = found.ids[:, 0]
        _, alignment = self._model.teacher_force(source_ids, target_ids)
        return {
            **self._best(found),
            "source_pieces": self.source_tokenizer.id_to_string(source_ids),
            "source_length": _lengths(source_ids),
            "target_pieces": self.target_tokenizer.id_to_string(target_ids),
            "target_length": _lengths(target_ids),
            "alignment": tf.cast(alignment, tf.float32)
            * tf.cast(target_ids != PAD, tf.float32)[:, :, None],
        }

    def _source_ids(self, source: tf.Tensor) -> tf.Tensor:
        ids = tf.cast(self.source_tokenizer.tokenize(source), tf.int32)
        ids = ids[:, : self._limits["max_source_length"]]
        ends = tf.fill([tf.shape(source)[0], 1], EOS)
        return tf.concat([ids, ends], axis=1).to_tensor(PAD)

    def _find(self, source_ids: tf.Tensor) -> Hypotheses:
        pieces = tf.cast(_lengths(source_ids) - 1, tf.float32)
        limits = tf.cast(pieces * self._limits["max_length_factor"], tf.int32)
        return self._model.search(
            source_ids, self._search, limits + self._limits["max_length_offset"] + 1
        )

    def _best(self, found: Hypotheses) -> dict[str, tf.Tensor]:
        ids, lengths = found.ids[:, 0], found.lengths[:, 0]
        pieces = tf.RaggedTensor.from_tensor(ids, lengths=lengths - 1)
        return {
            "translation": self.target_tokenizer.detokenize(pieces),
            "score": found.log_probabilities[:, 0],
        }


def _lengths(ids: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=1)


TASK = Translation()
