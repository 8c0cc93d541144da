"""Preprocessing, model and training interface of similarity."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from regard.models.encoders import create_encoder
from regard.models.settings.training import TrainingConfig
from regard.models.similarity import Similarity
from regard.models.tasks.base import Columns, DecodeFn, Task, Tokenizers, dtype_policy, flat_values
from regard.models.tasks.served_model import with_signature
from regard.models.tasks.similarity.served import ServedSimilarity, split_words, word_ids
from regard.models.tasks.similarity.settings import SimilarityModelConfig, SimilarityPreprocessing

_SIDES = ("first", "second")


class SentenceSimilarity(Task):
    """Two sentences and a number: semantic similarity, relatedness, or another rating."""

    served = ServedSimilarity

    def preprocess(
        self, inputs: Columns, tokenizers: Tokenizers, settings: SimilarityPreprocessing
    ) -> dict[str, Any]:
        """Return ``first_ids``, ``second_ids`` (ragged int64), and the score as ``target``, 0-1."""
        outputs: dict[str, Any] = {}
        for side in _SIDES:
            # Both sentences share one tokenizer.
            words = split_words(tokenizers["first"], flat_values(inputs[side]))
            ids = word_ids(tokenizers["first"], words, settings.oov_buckets)
            outputs[f"{side}_ids"] = tf.cast(ids, tf.int64)
        low, high = settings.scale.low, settings.scale.high
        outputs["target"] = (flat_values(inputs["score"])[:, None] - low) / (high - low)
        return outputs

    def lengths(self, features: Columns) -> tf.Tensor:
        """Return the numbers of tokens of the longer sentence."""
        first, second = (features[f"{side}_ids"].row_lengths()[:, None] for side in _SIDES)
        return tf.where((first > 0) & (second > 0), tf.maximum(first, second), 0)

    def model_inputs(self, features: Columns) -> dict[str, tf.Tensor]:
        """Return ``first`` and ``second`` as int32, and ``score``, ``[batch]``."""
        ids = {side: tf.cast(features[f"{side}_ids"], tf.int32).to_tensor() for side in _SIDES}
        return {**ids, "score": tf.reshape(features["target"], [-1])}

    def raw_inputs(self, features: Columns, tokenizers: Tokenizers) -> dict[str, Any]:
        """Return the sentences without unknown words, which cannot be detokenized."""
        texts = {}
        for side in _SIDES:
            ids = tf.cast(features[f"{side}_ids"], tf.int32)
            known = tf.boolean_mask(ids, ids < tokenizers["first"].vocab_size())
            texts[side] = tokenizers["first"].detokenize(known).numpy()
        return texts

    def build(
        self,
        model: SimilarityModelConfig,
        training: TrainingConfig,
        vocabulary_sizes: Mapping[str, int],
    ) -> Similarity:
        policy = dtype_policy(training)
        encoder = create_encoder(
            model.encoder,
            vocabulary_sizes["first"] + model.oov_buckets,
            embedding=model.embedding,
            dropout=model.dropout,
            # Pretrained vectors already have the right size, and learn slowly.
            scale=not model.pretrained,
            dtype=policy,
        )
        similarity = Similarity(
            encoder,
            pooling=model.pooling.model_dump(mode="json"),
            cross=model.cross.to_kwargs() if model.cross else None,
            comparison=model.comparison,
            hidden=model.hidden_units,
            dropout=model.dropout,
            dtype=policy,
        )
        similarity.build()
        return similarity

    def embeddings(self, model: Similarity, key: str) -> tuple[Any, str]:
        return model.encoder.embedding, "first"

    def vocab_weights(self, model: Similarity) -> list[tuple[Any, int, str]]:
        """Return the embedding; the rows of unknown words come after those of the vocabulary."""
        return [(model.encoder.embedding.table, 0, "first")]

    def decode_fn(
        self, model: Similarity, tokenizers: Tokenizers, settings: Any, search: None
    ) -> DecodeFn:
        scale = settings.scale
        ids = tf.TensorSpec([None, None], tf.int32)

        @with_signature([ids, ids])
        def compare(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
            return model.compare(first, second)["similarity"]

        def to_scale(numbers: tf.Tensor) -> list[float]:
            return (scale.low + (scale.high - scale.low) * numbers.numpy()).tolist()

        def decode(batch: Mapping[str, tf.Tensor]) -> tuple[list[float], list[list[float]]]:
            scores = compare(batch["first"], batch["second"])
            return to_scale(scores), [[number] for number in to_scale(batch["score"])]

        return decode
