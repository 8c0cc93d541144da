"""The preprocessing of similarity."""

from typing import Any

import tensorflow as tf

from regard.models.tasks.preprocessing import Columns, Preprocessing, Tokenizers, single_values
from regard.models.tasks.similarity.description import SIDES, SimilarityPreprocessingConfig
from regard.models.tasks.similarity.word_tokens import split_words, word_ids


class SentencePreprocessing(Preprocessing):
    """Raw rows with two sentences, ``first`` and ``second``, and their ``score``."""

    def transform(
        self, inputs: Columns, tokenizers: Tokenizers, settings: SimilarityPreprocessingConfig
    ) -> dict[str, Any]:
        """Return ``first_ids``, ``second_ids`` (ragged int64), and the score as ``target``, 0-1."""
        outputs: dict[str, Any] = {}
        for side in SIDES:
            # Both sentences share one tokenizer.
            words = split_words(tokenizers["first"], single_values(inputs, side))
            ids = word_ids(tokenizers["first"], words, settings.oov_buckets)
            outputs[f"{side}_ids"] = tf.cast(ids, tf.int64)
        low, high = settings.scale.low, settings.scale.high
        outputs["target"] = (single_values(inputs, "score")[:, None] - low) / (high - low)
        return outputs

    def lengths(self, features: Columns) -> tf.Tensor:
        """Return the numbers of tokens of the longer sentence; 0 also without a score."""
        first, second = (features[f"{side}_ids"].row_lengths()[:, None] for side in SIDES)
        is_complete = (first > 0) & (second > 0) & ~tf.math.is_nan(features["target"])
        return tf.where(is_complete, tf.maximum(first, second), 0)
