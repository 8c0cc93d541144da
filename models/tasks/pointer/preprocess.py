"""The preprocessing of the pointer task."""

from typing import Any

import tensorflow as tf

from regard.models.tasks.pointer.description import PointerPreprocessingConfig
from regard.models.tasks.pointer.points import normalize_points
from regard.models.tasks.preprocessing import Columns, Preprocessing, Tokenizers, to_ragged
from regard.models.vocabulary import FIRST_POSITION


class PointPreprocessing(Preprocessing):
    """Raw rows with ``points`` and ``answer``, positions of some of them."""

    def transform(
        self, inputs: Columns, tokenizers: Tokenizers, settings: PointerPreprocessingConfig
    ) -> dict[str, Any]:
        """Return ``points``, their number ``points_length``, and ``answer_ids`` (ragged int64).

        Points are ragged floats, for example x0 y0 x1 y1 ... in the plane.

        An answer that violates the rule of ``visits`` has no ids, since no model could predict it.
        """
        flat = to_ragged(inputs["points"])
        dimensions = settings.dimensions
        lengths = flat.row_lengths() // dimensions
        dense = flat.to_tensor()
        batch, width = tf.shape(dense)[0], tf.shape(dense)[1]
        if settings.normalise:
            points = tf.reshape(dense, [batch, width // dimensions, dimensions])
            dense = tf.reshape(normalize_points(points, lengths), [batch, width])
        positions = to_ragged(inputs["answer"])
        valid = _is_valid(positions, lengths, settings.visits)
        counts = tf.where(valid, positions.row_lengths(), 0)
        ids = tf.cast(positions.to_tensor() + FIRST_POSITION, tf.int64)
        return {
            "points": tf.RaggedTensor.from_tensor(dense, lengths=dimensions * lengths),
            "points_length": lengths,
            "answer_ids": tf.RaggedTensor.from_tensor(ids, lengths=counts),
        }

    def lengths(self, features: Columns) -> tf.Tensor:
        """Return the numbers of points, plus 1 for the end; 0 without a valid answer."""
        points, answers = (features[name].row_lengths() for name in ("points", "answer_ids"))
        lengths = tf.reshape(features["points_length"], [-1]) + 1
        return tf.where((points > 0) & (answers > 0), lengths, 0)[:, None]


def _is_valid(positions: tf.RaggedTensor, lengths: tf.Tensor, visits: str) -> tf.Tensor:
    """Return which answers follow the rule of ``visits``, ``[batch]``."""
    counts = positions.row_lengths()
    if visits == "any":
        return counts <= lengths
    # Sorting makes duplicates adjacent; padding comes last.
    last = positions.dtype.max
    ordered = tf.sort(positions.to_tensor(last), axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != last)
    once = ~tf.reduce_any(twice, axis=1)
    return once & (counts == lengths) if visits == "all" else once
