"""A similarity as it is exported: two texts in, a score out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from models.similarity import Similarity
from models.tasks.served import Served, ServedModule, with_signature
from models.tasks.similarity.words import ids_of, words_of
from models.vocabulary import PAD

_TEXTS = [tf.TensorSpec([None], tf.string, name=name) for name in ("first", "second")]


class ServedSimilarity(ServedModule):
    """Tokenizer and model in one graph: what TensorFlow Serving runs.

    Args:
        model: the trained model, in float32.
        tokenizer: of both sentences (``tensorflow_text``).
        settings: the YAML's section ``model``: its ``scale``, ``unknown`` and ``max_length``.
    """

    _model: Similarity

    def __init__(self, model: Similarity, tokenizer: Any, settings: Mapping[str, Any]):
        super().__init__(model, name="served_similarity")
        self.tokenizer = tokenizer
        self._settings = dict(settings)

    def served(self, task: str) -> Served:
        """The whole export; ``task`` is the name of the task that it is for."""
        signatures: dict[str, Callable[..., Any]] = {
            "serving_default": self.compare,
            "align": self.align,
        }
        texts = [{"name": name, "kind": "text"} for name in ("first", "second")]
        detail: dict[str, list[str | None]] = {
            "similarity": [],
            "cut": [],
            **{f"{side}_length": [] for side in ("first", "second")},
            **{f"{side}_pieces": [f"{side}_length"] for side in ("first", "second")},
            **{f"{side}_weights": [f"{side}_length"] for side in ("first", "second")},
        }
        looks = None
        if self._model.cross is not None:
            detail["alignment"] = ["first_length", "second_length"]
            looks = {"rows": "first_pieces", "columns": "second_pieces", "weights": "alignment"}
        if self._model.apart:
            # Made here: a method with a signature would be exported wherever the module is.
            specs = [tf.TensorSpec([None], tf.string, name="sentence")]
            signatures["embed"] = with_signature(specs)(self.embed)
        sentence = {"name": "sentence", "kind": "text", "like": "first"}
        meaning = {
            "serving_default": {"inputs": texts, "outputs": {"similarity": []}},
            "align": {"inputs": texts, "outputs": detail},
            "embed": {"inputs": [sentence], "outputs": {"vector": [None]}},
        }
        contract = {
            "task": task,
            "inputs": texts,
            "answer": "similarity",
            "answer_kind": "number",
            "score": None,
            "detail": "align",
            "scored": None,
            "size": {"output": "first_length", "minus": 0, "unit": "pieces of the first sentence"},
            "looks": looks,
            "heads": None,
            "cut": "cut",
            "signatures": {name: meaning[name] for name in signatures},
        }
        return Served(self, signatures, contract)

    @with_signature(_TEXTS)
    def compare(self, first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts ``[batch]`` → ``similarity`` ``[batch]``, in the scale of the data."""
        ids = [self._read(text)[0] for text in (first, second)]
        return {"similarity": self._scaled(self._model.compare(*ids)["similarity"])}

    @with_signature(_TEXTS)
    def align(self, first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        """As ``compare``, with what it rests on.

        For both sentences ``<side>_pieces``, ``<side>_length`` and ``<side>_weights``, ``[batch,
        pieces]``: how much each piece has to do with the sentence's vector. ``alignment`` is
        ``[batch, first, second]``, where the sentences look at each other. ``cut`` ``[batch]`` is
        how many pieces of the two were not read.
        """
        sides = {"first": self._read(first), "second": self._read(second)}
        found = self._model.compare(*(ids for ids, _, _ in sides.values()))
        outputs = {"similarity": self._scaled(found["similarity"])}
        for side, (ids, words, _) in sides.items():
            outputs[f"{side}_pieces"] = words
            outputs[f"{side}_length"] = tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=1)
            outputs[f"{side}_weights"] = tf.cast(found[f"{side}_weights"], tf.float32)
        outputs["cut"] = sides["first"][2] + sides["second"][2]
        if found["alignment"] is not None:
            outputs["alignment"] = tf.cast(found["alignment"], tf.float32)
        return outputs

    def embed(self, sentence: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts ``[batch]`` → ``vector`` ``[batch, depth]``."""
        return {"vector": self._model.embed(self._read(sentence)[0])}

    def _read(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Ids and pieces ``[batch, pieces]``, and how many more there were, ``[batch]``."""
        words = words_of(self.tokenizer, text)
        limit = self._settings["max_length"]
        cut = tf.maximum(tf.cast(words.row_lengths(), tf.int32) - limit, 0)
        words = words[:, :limit]
        ids = ids_of(self.tokenizer, words, self._settings["unknown"]).to_tensor(PAD)
        # Where all sentences are empty there is a column of padding too: loops need a step.
        none = tf.cast(tf.shape(ids)[1] == 0, tf.int32)
        ids = tf.pad(ids, [[0, 0], [0, none]], constant_values=PAD)
        return ids, words.to_tensor("", shape=tf.shape(ids, tf.int64)), cut

    def _scaled(self, similarity: tf.Tensor) -> tf.Tensor:
        scale = self._settings["scale"]
        return scale["low"] + (scale["high"] - scale["low"]) * similarity
