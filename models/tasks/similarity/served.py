"""The exported graph of similarity."""

from typing import Any

import numpy as np
import tensorflow as tf

from regard.models.similarity import Similarity
from regard.models.tasks.served_model import ExportedSignature, OutputLengths, Row, ServedModule
from regard.models.tasks.similarity.description import SIDES
from regard.models.tasks.similarity.word_tokens import split_words, word_ids
from regard.models.tasks.text_preprocessing import limit_characters, to_dense
from regard.models.vocabulary import PAD


class ServedSimilarity(ServedModule):
    """Tokenizer and model in one graph, as TensorFlow Serving runs it."""

    tokenizer_names = ("first",)
    _model: Similarity

    def signatures(self) -> dict[str, ExportedSignature]:
        """Return the signatures; ``embed`` if sentences are encoded independently."""
        detail: OutputLengths = {
            "similarity": [],
            "cut": [],
            **{f"{side}_length": [] for side in SIDES},
            **{f"{side}_pieces": [f"{side}_length"] for side in SIDES},
            **{f"{side}_weights": [f"{side}_length"] for side in SIDES},
        }
        if self._model.cross is not None:
            detail["alignment"] = ["first_length", "second_length"]
        signatures = {
            "serving_default": ExportedSignature(self.predict, self._inputs, {"similarity": []}),
            "align": ExportedSignature(self.align, self._inputs, detail),
        }
        if self._model.encodes_independently:
            sentence = {"name": "sentence", "kind": "text", "like": "first"}
            signatures["embed"] = ExportedSignature(self.embed, [sentence], {"vector": [None]})
        return signatures

    def contract(self) -> dict[str, Any]:
        scale = self._settings.scale
        limits = f"from {scale.low:g} to {scale.high:g}"
        attention = {"rows": "first_pieces", "columns": "second_pieces", "weights": "alignment"}
        return {
            "about": f"The model scores how similar two texts are, {limits}.",
            "score": None,
            "scored": None,
            "size": {"output": "first_length", "minus": 0, "unit": "tokens of the first sentence"},
            "looks": attention if self._model.cross is not None else None,
            "cut": "cut",
        }

    def raw_inputs(self, row: Row) -> dict[str, Any]:
        """Return the sentences without unknown words, which cannot be detokenized."""
        texts, tokenizer = {}, self.tokenizers["first"]
        for side in SIDES:
            ids = row[f"{side}_ids"].astype(np.int32)
            known = ids[ids < int(tokenizer.vocab_size())]
            texts[side] = tokenizer.detokenize(known).numpy()
        return texts

    def predict(self, first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return ``similarity`` ``[batch]`` of texts ``[batch]``, on the scale of the data."""
        ids = [self._tokenize(text)[0] for text in (first, second)]
        return {"similarity": self._to_scale(self._model.compare(*ids)["similarity"])}

    def align(self, first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the output of ``predict``, and the attention behind it.

        For both sentences ``<side>_pieces``, ``<side>_length`` and ``<side>_weights``, ``[batch,
        tokens]``: the weight of each token in the sentence's vector. ``alignment`` ``[batch, first,
        second]`` is the cross-attention of the sentences. ``cut`` ``[batch]`` is the number of
        truncated tokens of both, see ``search_outputs.token_ids``.
        """
        sides = {"first": self._tokenize(first), "second": self._tokenize(second)}
        results = self._model.compare(*(ids for ids, _, _ in sides.values()))
        outputs = {"similarity": self._to_scale(results["similarity"])}
        for side, (ids, words, _) in sides.items():
            outputs[f"{side}_pieces"] = words
            outputs[f"{side}_length"] = tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=1)
            outputs[f"{side}_weights"] = tf.cast(results[f"{side}_weights"], tf.float32)
        outputs["cut"] = sides["first"][2] + sides["second"][2]
        if results["alignment"] is not None:
            outputs["alignment"] = tf.cast(results["alignment"], tf.float32)
        return outputs

    def embed(self, sentence: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return ``vector`` ``[batch, depth]`` of texts ``[batch]``."""
        return {"vector": self._model.embed(self._tokenize(sentence)[0])}

    def _tokenize(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return ids and tokens ``[batch, tokens]``, and the numbers of truncated tokens."""
        limit = self._settings.max_length
        shortened, is_shortened = limit_characters(text, limit)
        words = split_words(self.tokenizers["first"], shortened)
        cut = tf.maximum(tf.cast(words.row_lengths(), tf.int32) - limit, is_shortened)
        words = words[:, :limit]
        ids = to_dense(word_ids(self.tokenizers["first"], words, self._settings.oov_buckets))
        return ids, words.to_tensor("", shape=tf.shape(ids, tf.int64)), cut

    def _to_scale(self, similarity: tf.Tensor) -> tf.Tensor:
        return self._settings.scale.to_scale(similarity)
