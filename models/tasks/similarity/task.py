"""What similarity does with pairs of sentences, and the model it builds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from models.encoders import ENCODERS
from models.serialization import by_name
from models.similarity import Similarity
from models.tasks.base import Answering, Task, policy_of
from models.tasks.served import Served, with_signature
from models.tasks.similarity import DESCRIPTION
from models.tasks.similarity.served import ServedSimilarity
from models.tasks.similarity.words import ids_of, words_of

_SIDES = ("first", "second")


class SentenceSimilarity(Task):
    """Two sentences and a number: semantic similarity, relatedness, and whatever else is rated."""

    description = DESCRIPTION

    def preprocess(
        self, inputs: Mapping[str, Any], tokenizers: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Texts → ``first_ids``, ``second_ids`` (ragged int64); the score → ``target``, 0 to 1."""
        outputs: dict[str, Any] = {}
        for side in _SIDES:
            column = inputs[side]
            text = column.values if isinstance(column, tf.SparseTensor) else column
            # One tokenizer serves both: their vocabularies are the same.
            words = words_of(tokenizers["first"], tf.reshape(text, [-1]))
            ids = ids_of(tokenizers["first"], words, settings["unknown"])
            outputs[f"{side}_ids"] = tf.cast(ids, tf.int64)
        column, scale = inputs["score"], settings["scale"]
        score = column.values if isinstance(column, tf.SparseTensor) else column
        low, high = scale["low"], scale["high"]
        outputs["target"] = (tf.reshape(score, [-1, 1]) - low) / (high - low)
        return outputs

    def length(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The pieces of the longer sentence."""
        return tf.maximum(*(tf.size(features[f"{side}_ids"]) for side in _SIDES))

    def is_complete(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Both sentences have at least one piece."""
        first, second = (tf.size(features[f"{side}_ids"]) for side in _SIDES)
        return (first > 0) & (second > 0)

    def model_inputs(self, features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """``first`` and ``second`` as int32, ``score`` as one float."""
        sides = {side: tf.cast(features[f"{side}_ids"], tf.int32) for side in _SIDES}
        return {**sides, "score": tf.reshape(features["target"], [])}

    def asked(
        self, features: Mapping[str, tf.Tensor], tokenizers: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Without the words that the vocabulary has not, which no tokenizer gives back."""
        found = {}
        for side in _SIDES:
            ids = tf.cast(features[f"{side}_ids"], tf.int32)
            known = tf.boolean_mask(ids, ids < tokenizers["first"].vocab_size())
            found[side] = tokenizers["first"].detokenize(known).numpy()
        return found

    def build(
        self, model: Mapping[str, Any], training: Mapping[str, Any], pieces: Mapping[str, int]
    ) -> Similarity:
        policy = policy_of(training)
        settings = dict(model["encoder"])
        make = by_name("encoder", ENCODERS, settings.pop("type"))
        encoder = make(
            pieces["first"] + model["unknown"],
            embedding=model["embedding"],
            dropout=model["dropout"],
            # Vectors that others have trained are of the right size, and learn slowly.
            scale=not model["pretrained"],
            dtype=policy,
            **settings,
        )
        similarity = Similarity(
            encoder,
            pooling=model["pooling"],
            cross=model["cross"],
            comparison=model["comparison"],
            hidden=model["hidden"],
            dropout=model["dropout"],
            dtype=policy,
        )
        similarity.build()
        return similarity

    def embeddings(self, model: Similarity, key: str) -> tuple[Any, str]:
        return model.encoder.embedding, "first"

    def by_piece(self, model: Similarity) -> list[tuple[Any, int, str]]:
        """The rows of unknown words stand behind those of the pieces."""
        return [(model.encoder.embedding.table, 0, "first")]

    def answering(
        self, model: Similarity, tokenizers: Mapping[str, Any], config: Mapping[str, Any]
    ) -> Answering:
        scale = config["model"]["scale"]
        ids = tf.TensorSpec([None, None], tf.int32)

        @with_signature([ids, ids])
        def compare(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
            return model.compare(first, second)["similarity"]

        def scaled(numbers: tf.Tensor) -> list[float]:
            return (scale["low"] + (scale["high"] - scale["low"]) * numbers.numpy()).tolist()

        def answer(batch: Mapping[str, tf.Tensor]) -> tuple[list[float], list[list[float]]]:
            found = compare(batch["first"], batch["second"])
            return scaled(found), [[number] for number in scaled(batch["score"])]

        return answer

    def served(
        self, model: Similarity, tokenizers: Mapping[str, Any], config: Mapping[str, Any]
    ) -> Served:
        module = ServedSimilarity(model, tokenizers["first"], config["model"])
        return module.served(self.description.name)


TASK = SentenceSimilarity()
