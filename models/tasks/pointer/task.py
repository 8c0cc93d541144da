"""Preprocessing, model and training interface of the pointer task."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from regard.models.decoders.pointer import FIRST, PointerDecoder
from regard.models.encoders import create_encoder
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.base import Columns, Tokenizers, dtype_policy, to_ragged
from regard.models.tasks.pointer.served import ServedPointer, mark_points, normalize_points
from regard.models.tasks.pointer.settings import PointerModelConfig, PointerPreprocessing
from regard.models.tasks.seq2seq_task import Seq2SeqTask


class Pointing(Seq2SeqTask):
    """Points and positions of some of them: sorting, convex hulls, tours and the like."""

    served = ServedPointer

    def preprocess(
        self, inputs: Columns, tokenizers: Tokenizers, settings: PointerPreprocessing
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
        ids = tf.cast(positions.to_tensor() + FIRST, tf.int64)
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

    def source_input(self, features: Columns) -> tf.Tensor:
        """Return the points with a mark, ``[batch, n, dimensions + 1]``."""
        flat, lengths = features["points"], tf.reshape(features["points_length"], [-1])
        # A row without points has no dimensions.
        dimensions = tf.reduce_max(flat.row_lengths() // tf.maximum(lengths, 1))
        shape = [tf.size(lengths, tf.int64), tf.reduce_max(lengths), dimensions]
        return mark_points(tf.reshape(flat.to_tensor(), shape), lengths)

    def raw_inputs(self, features: Columns, tokenizers: Tokenizers) -> dict[str, Any]:
        length = int(tf.reshape(features["points_length"], []))
        return {"points": features["points"].numpy().reshape(length, -1)}

    def build(
        self,
        model: PointerModelConfig,
        training: TrainingConfig,
        vocabulary_sizes: Mapping[str, int],
    ) -> Seq2Seq:
        policy = dtype_policy(training)
        common = {"dropout": model.dropout, "dtype": policy}
        encoder = create_encoder(
            model.encoder, None, embedding=model.width, dimensions=model.dimensions, **common
        )
        decoder = PointerDecoder(
            encoder.depth,
            encoder.final_depth,
            visits=model.visits,
            **model.decoder.to_kwargs(),
            **common,
        )
        seq2seq = Seq2Seq(encoder, decoder, dtype=policy)
        seq2seq.build()
        return seq2seq

    def source_spec(self, model: Seq2Seq) -> tf.TensorSpec:
        return tf.TensorSpec([None, None, model.encoder.embedding.dimensions + 1], tf.float32)

    def max_lengths(self, source: tf.Tensor, search: Any) -> tf.Tensor:
        """Return the numbers of points."""
        return tf.cast(tf.reduce_sum(source[:, :, -1], axis=1), tf.int32)

    def decode_ids(self, ids: tf.Tensor, tokenizers: Tokenizers) -> list[list[int]]:
        return [[int(i) - FIRST for i in row if i >= FIRST] for row in ids.numpy()]


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
