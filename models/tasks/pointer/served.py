"""The exported graph of the pointer task."""

from typing import Any

import tensorflow as tf

from regard.models.attention.alignments.base import MASKED
from regard.models.search import Hypotheses
from regard.models.seq2seq import Seq2Seq
from regard.models.tasks.greedy_decoding import greedy_decode_fn
from regard.models.tasks.pointer.points import mark_points, normalize_points
from regard.models.tasks.search_outputs import N_BEST
from regard.models.tasks.served_model import (
    DecodeFn,
    ExportedSignature,
    OutputLengths,
    Row,
    ServedModule,
)
from regard.models.vocabulary import EOS, FIRST_POSITION, PAD

NO_POSITION = -1  # after the last position of an output


class ServedPointer(ServedModule):
    """Normalization, model and search in one graph, as TensorFlow Serving runs it.

    Of the limits of the search only ``max_source_length`` applies.
    """

    _model: Seq2Seq

    @property
    def _inputs(self) -> list[dict[str, Any]]:
        dimensions = self._settings.dimensions
        extra = {"dimensions": dimensions} if dimensions != 2 else {}
        return [{**entry, **extra} for entry in super()._inputs]

    def signatures(self) -> dict[str, ExportedSignature]:
        """Return the signatures: ``nbest`` only for several hypotheses."""
        points = self._inputs
        positions = {"name": "positions", "kind": "positions", "like": "positions"}
        best: OutputLengths = {"positions": ["length"], "length": [], "score": []}
        detail: OutputLengths = {"points_length": [], "alignment": ["length", "points_length"]}
        scored: OutputLengths = {"score": [], "position_scores": ["length"], "length": []}
        signatures = {
            "serving_default": ExportedSignature(self.predict, points, best),
            "align": ExportedSignature(self.align, points, {**best, **detail}),
            "score": ExportedSignature(self.score, [*points, positions], scored),
        }
        if self._search.hypotheses > 1:
            # The last dimension of the hypotheses has a length of its own for each: ``lengths``.
            outputs = {**N_BEST, "hypotheses": [None, "points_length"], "points_length": []}
            signatures["nbest"] = ExportedSignature(self.n_best, points, outputs)
        return signatures

    def contract(self) -> dict[str, Any]:
        attention = {"rows": "positions", "columns": "points", "weights": "alignment"}
        return {
            "size": {"input": "points", "minus": 0, "unit": "points"},
            # Attention is drawn on the plane.
            "looks": attention if self._settings.dimensions == 2 else None,
        }

    def raw_inputs(self, row: Row) -> dict[str, Any]:
        return {"points": row["points"].reshape(int(row["points_length"][0]), -1)}

    def decode_fn(self) -> DecodeFn:
        source = tf.TensorSpec([None, None, self._settings.dimensions + 1], tf.float32)
        return greedy_decode_fn(self._model, source, _limits_of_marked, _positions_of_training)

    def predict(self, points: tf.Tensor, points_length: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the best positions for points and their numbers ``[batch]``.

        Points are ``[batch, n, dimensions]``.

        ``positions`` ``[batch, n]`` are indices from 0, then -1; ``length`` ``[batch]`` is their
        number; ``score`` ``[batch]`` is the natural logarithm of their probability. Values after a
        row's points do not matter.

        Raises:
            InvalidArgumentError: A row has too few or too many points, or one that is not finite.
        """
        source, keys = self._model_input(points, points_length)
        return self._best(self._run_search(source, points_length, keys), tf.shape(points)[1])

    def align(self, points: tf.Tensor, points_length: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the outputs of ``predict``, and the distribution over the points at each step.

        Row t of ``alignment`` ``[batch, n, n]`` contains the probability of each point at step t,
        given the previous ones; the rest to 1 is the probability of the end. Rows from ``length``
        on are 0, and so are columns from ``points_length`` ``[batch]`` on.
        """
        source, keys = self._model_input(points, points_length)
        hypotheses = self._run_search(source, points_length, keys)
        _, alignment = self._model.teacher_force(source, hypotheses.ids[:, 0])
        width = tf.shape(points)[1]
        best = self._best(hypotheses, width)
        # The last step and those after an output only predict the end.
        steps = tf.sequence_mask(best["length"], tf.shape(alignment)[1])
        alignment = tf.where(steps[:, :, None], tf.cast(alignment, tf.float32), 0.0)
        alignment = tf.pad(alignment, [[0, 0], [0, width], [0, width]])[:, :width, :width]
        return {**best, "points_length": tf.identity(points_length), "alignment": alignment}

    def score(
        self,
        points: tf.Tensor,
        points_length: tf.Tensor,
        positions: tf.Tensor,
        positions_length: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Return the probability of given positions ``[batch, positions]`` with their lengths.

        ``score`` ``[batch]`` is the natural logarithm of the probability, including the end;
        ``position_scores`` ``[batch, positions]`` are those of single positions. An output that
        violates the rule of ``visits``, or has more positions than points, gets about -1e9.

        Raises:
            InvalidArgumentError: A position is not one of a point of its row, or the points are
                invalid.
        """
        source, _ = self._model_input(points, points_length)
        width = tf.shape(positions)[1]
        mask = tf.sequence_mask(positions_length, width)
        inside = ((positions >= 0) & (positions < points_length[:, None])) | ~mask
        valid = tf.reduce_all(inside, axis=1) & (positions_length <= width)
        message = "positions without a point; in the rows, counted from 0:"
        data = [message, tf.where(~valid)[:, 0]]
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(valid), data, 20)]):
            # No output has more positions than points. Time and memory grow with the steps.
            steps = tf.minimum(width, tf.maximum(tf.reduce_max(points_length, axis=0), 0))
        lengths = tf.minimum(positions_length, points_length)
        mask = tf.sequence_mask(lengths, steps)
        ids = tf.pad(tf.where(mask, positions[:, :steps] + FIRST_POSITION, PAD), [[0, 0], [0, 1]])
        ends = tf.one_hot(lengths, steps + 1, on_value=EOS, off_value=PAD, dtype=tf.int32)
        scores, _ = self._model.score_with_alignment(source, ids + ends)
        scores = tf.cast(scores, tf.float32)
        total = tf.where(positions_length > lengths, MASKED, tf.reduce_sum(scores, axis=1))
        position_scores = tf.where(mask, scores[:, :steps], 0.0)
        return {
            "score": total,
            "position_scores": tf.pad(position_scores, [[0, 0], [0, width - steps]]),
            "length": tf.identity(positions_length),
        }

    def n_best(self, points: tf.Tensor, points_length: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return all hypotheses of each row, ``[batch, hypotheses]``, the best first.

        ``hypotheses`` ``[batch, hypotheses, n]`` are like ``positions``, with their ``lengths``,
        their ``log_probabilities``, and the ``scores`` by which they are sorted. Missing ones are
        empty, with impossible scores.
        """
        source, keys = self._model_input(points, points_length)
        outputs = self._run_search(source, points_length, keys)
        lengths = tf.maximum(outputs.lengths - 1, 0)
        return {
            "hypotheses": _positions(outputs.ids, lengths, tf.shape(points)[1]),
            "lengths": lengths,
            "log_probabilities": outputs.log_probabilities,
            "scores": outputs.scores,
            "points_length": tf.identity(points_length),
        }

    def _model_input(self, points: tf.Tensor, lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the input of the model, of ``mark_points``, and a random key of each row."""
        with tf.control_dependencies(self._checks(points, lengths)):
            points = tf.identity(points)
        # An empty batch gets one column: a loop without steps has nothing to stack.
        longest = tf.maximum(tf.reduce_max(lengths, axis=0), 1)
        points = tf.pad(points, [[0, 0], [0, 1], [0, 0]])[:, :longest]
        mask = tf.sequence_mask(lengths, longest)[:, :, None]
        # Sampling depends only on the points and the seed.
        text = tf.where(mask, tf.strings.as_string(points) + " ", "")
        text = tf.strings.reduce_join(text, axis=[1, 2])
        keys = tf.strings.to_hash_bucket_fast(text, 2**31 - 1)
        if self._settings.normalise:
            points = normalize_points(points, lengths)
        return mark_points(points, lengths), tf.cast(keys, tf.int32)

    def _checks(self, points: tf.Tensor, lengths: tf.Tensor) -> list[Any]:
        width = tf.shape(points)[1]
        least, most = self._settings.min_points, self._search_settings.max_source_length
        suffix = "the numbers of points of all rows that were sent:"
        rules = {
            f"a row has fewer than the {least} points of model.min_points": lengths >= least,
            f"a row has more than the {most} points of max_source_length": lengths <= most,
            "points_length is more than the points that were sent": lengths <= width,
        }
        checks = [
            tf.debugging.Assert(tf.reduce_all(valid), [f"{message}; {suffix}", lengths], 20)
            for message, valid in rules.items()
        ]
        finite = tf.reduce_all(tf.math.is_finite(points), axis=2)
        finite = tf.reduce_all(finite | ~tf.sequence_mask(lengths, width), axis=1)
        message = "points that are not finite; in the rows, counted from 0:"
        data = [message, tf.where(~finite)[:, 0]]
        return [*checks, tf.debugging.Assert(tf.reduce_all(finite), data, 20)]

    def _run_search(self, source: tf.Tensor, lengths: tf.Tensor, keys: tf.Tensor) -> Hypotheses:
        return self._model.search(source, self._search, lengths + 1, keys=keys)

    def _best(self, hypotheses: Hypotheses, width: tf.Tensor) -> dict[str, tf.Tensor]:
        length = hypotheses.lengths[:, 0] - 1
        return {
            "positions": _positions(hypotheses.ids[:, 0], length, width),
            "length": length,
            "score": hypotheses.log_probabilities[:, 0],
        }


def _positions(ids: tf.Tensor, lengths: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Return the positions ``[..., width]`` of ids ``[..., steps]`` with lengths without EOS."""
    mask = tf.sequence_mask(lengths, tf.shape(ids)[-1])
    positions = tf.where(mask, tf.cast(ids, tf.int32) - FIRST_POSITION, NO_POSITION)
    padding = [[0, 0]] * (len(ids.shape) - 1) + [[0, width]]
    return tf.pad(positions, padding, constant_values=NO_POSITION)[..., :width]


def _limits_of_marked(source: tf.Tensor) -> tf.Tensor:
    """Return the numbers of points of ``mark_points``, and one step for the end."""
    return tf.cast(tf.reduce_sum(source[:, :, -1], axis=1), tf.int32) + 1


def _positions_of_training(ids: tf.Tensor) -> list[list[int]]:
    """Return the positions of padded ids ``[batch, length]``."""
    positions = []
    for row in ids.numpy():
        choices = row[row >= FIRST_POSITION]
        positions.append((choices - FIRST_POSITION).tolist())
    return positions
