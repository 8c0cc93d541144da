"""A pointer as it is exported: points in, positions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from models.decoders.pointer import FIRST
from models.search import Hypotheses
from models.seq2seq import Seq2Seq
from models.tasks.found import N_BEST, search_of
from models.tasks.pointer.points import as_read, normalised
from models.tasks.served import Served, ServedModule, with_signature
from models.vocabulary import EOS, PAD

NOWHERE = -1  # behind an answer
_POINTS = [
    tf.TensorSpec([None, None, 2], tf.float32, name="points"),
    tf.TensorSpec([None], tf.int32, name="points_length"),
]
_PAIRS = [
    *_POINTS,
    tf.TensorSpec([None, None], tf.int32, name="positions"),
    tf.TensorSpec([None], tf.int32, name="positions_length"),
]


class ServedPointer(ServedModule):
    """Normalisation, model and search in one graph: what TensorFlow Serving runs.

    Args:
        model: the trained model, in float32.
        settings: the YAML's section ``model``: its ``least`` and ``normalise``.
        search: the YAML's section ``search``: its type, its ``max_source_length``, and that
            search's own settings.

    Raises:
        ValueError: there is no such search.
    """

    _model: Seq2Seq

    def __init__(self, model: Seq2Seq, settings: Mapping[str, Any], search: Mapping[str, Any]):
        super().__init__(model, name="served_pointer")
        self._least, self._normalise = settings["least"], settings["normalise"]
        self._search, limits = search_of(search)
        self._most = limits["max_source_length"]  # the only one that says something of points

    def served(self, task: str) -> Served:
        """The whole export; ``task`` is the name of the task that it is for."""
        points = {"name": "points", "kind": "points"}
        given = {"name": "positions", "kind": "positions", "like": "positions"}
        answer: dict[str, list[str | None]] = {"positions": ["length"], "length": [], "score": []}
        detail: dict[str, list[str | None]] = {
            **answer,
            "points_length": [],
            "alignment": ["length", "points_length"],
        }
        scored: dict[str, list[str | None]] = {
            "score": [],
            "position_scores": ["length"],
            "length": [],
        }
        # Of the dimensions of the hypotheses the last one depends on each: ``lengths`` tell.
        n_best = {**N_BEST, "hypotheses": [None, "points_length"], "points_length": []}
        meaning = {
            "serving_default": {"inputs": [points], "outputs": answer},
            "align": {"inputs": [points], "outputs": detail},
            "score": {"inputs": [points, given], "outputs": scored},
            "nbest": {"inputs": [points], "outputs": n_best},
        }
        signatures = self.signatures()
        contract = {
            "task": task,
            "inputs": [points],
            "answer": "positions",
            "answer_kind": "positions",
            "score": "score",
            "detail": "align",
            "scored": "score",
            "size": {"input": "points", "minus": 0, "unit": "points"},
            "looks": {"rows": "positions", "columns": "points", "weights": "alignment"},
            "heads": None,
            "cut": None,
            "signatures": {name: meaning[name] for name in signatures},
        }
        return Served(self, signatures, contract)

    def signatures(self) -> dict[str, Callable[..., Any]]:
        """What the exported model can be asked; ``nbest`` only where there is more than one."""
        found: dict[str, Callable[..., Any]] = {
            "serving_default": self.point,
            "align": self.align,
            "score": self.score,
        }
        if self._search.hypotheses > 1:
            # Made here: a method with a signature would be exported wherever the module is.
            found["nbest"] = with_signature(_POINTS)(self.n_best)
        return found

    @with_signature(_POINTS)
    def point(self, points: tf.Tensor, points_length: tf.Tensor) -> dict[str, tf.Tensor]:
        """Points ``[batch, n, 2]`` and their numbers ``[batch]`` → the best answers.

        ``positions`` ``[batch, n]`` count from 0, with -1 behind; ``length`` ``[batch]`` is how
        many there are; ``score`` ``[batch]`` is the natural logarithm of their probability.
        What stands behind a row's points does not matter.

        Raises:
            InvalidArgumentError: a row has too few or too many points, or one that is not finite.
        """
        read, keys = self._read(points, points_length)
        return self._best(self._find(read, points_length, keys), tf.shape(points)[1])

    @with_signature(_POINTS)
    def align(self, points: tf.Tensor, points_length: tf.Tensor) -> dict[str, tf.Tensor]:
        """As ``point``, with the model's mind at each step.

        ``alignment`` ``[batch, n, n]`` has in row t the probability that each of the points comes
        as the t-th one, given those before; what is left to 1 is the end's. Rows from ``length``
        on are 0, and so are columns from ``points_length`` ``[batch]`` on.
        """
        read, keys = self._read(points, points_length)
        found = self._find(read, points_length, keys)
        _, looks = self._model.teacher_force(read, found.ids[:, 0])
        width = tf.shape(points)[1]
        best = self._best(found, width)
        # The last step is the end's alone, and so are those behind an answer.
        steps = tf.sequence_mask(best["length"], tf.shape(looks)[1])
        looks = tf.where(steps[:, :, None], tf.cast(looks, tf.float32), 0.0)
        looks = tf.pad(looks, [[0, 0], [0, width], [0, width]])[:, :width, :width]
        return {**best, "points_length": tf.identity(points_length), "alignment": looks}

    @with_signature(_PAIRS)
    def score(
        self,
        points: tf.Tensor,
        points_length: tf.Tensor,
        positions: tf.Tensor,
        positions_length: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """How probable the model finds given answers, ``[batch, positions]`` with their lengths.

        ``score`` ``[batch]`` is the natural logarithm of an answer's probability, its end counted;
        ``position_scores`` ``[batch, positions]`` are those of its positions alone. What breaks
        the rule of ``visits`` gets about -1e9.

        Raises:
            InvalidArgumentError: a position names no point of its row, or the points are wrong.
        """
        read, _ = self._read(points, points_length)
        width = tf.shape(positions)[1]
        real = tf.sequence_mask(positions_length, width)
        inside = ((positions >= 0) & (positions < points_length[:, None])) | ~real
        fine = tf.reduce_all(inside, axis=1) & (positions_length <= width)
        message = "positions that name no point; in the rows, counted from 0:"
        told = [message, tf.where(~fine)[:, 0]]
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(fine), told, 20)]):
            ids = tf.pad(tf.where(real, positions + FIRST, PAD), [[0, 0], [0, 1]])
        ends = tf.one_hot(positions_length, width + 1, on_value=EOS, off_value=PAD, dtype=tf.int32)
        scores = tf.cast(self._model.piece_scores(read, ids + ends), tf.float32)
        return {
            "score": tf.reduce_sum(scores, axis=1),
            "position_scores": tf.where(real, scores[:, :width], 0.0),
            "length": tf.identity(positions_length),
        }

    def n_best(self, points: tf.Tensor, points_length: tf.Tensor) -> dict[str, tf.Tensor]:
        """What the search found for each row, ``[batch, hypotheses]``, the best first.

        ``hypotheses`` ``[batch, hypotheses, n]`` are answers as ``positions`` is one, with their
        ``lengths``, their ``log_probabilities``, and the ``scores`` by which they are ordered.
        Where there are fewer the rest is empty, with impossible scores.
        """
        read, keys = self._read(points, points_length)
        found = self._find(read, points_length, keys)
        lengths = tf.maximum(found.lengths - 1, 0)
        return {
            "hypotheses": _positions(found.ids, lengths, tf.shape(points)[1]),
            "lengths": lengths,
            "log_probabilities": found.log_probabilities,
            "scores": found.scores,
            "points_length": tf.identity(points_length),
        }

    def _read(self, points: tf.Tensor, lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Points as the model reads them, ``[batch, longest, 3]``, and a key of each row."""
        with tf.control_dependencies(self._checks(points, lengths)):
            points = tf.identity(points)
        # An empty request gets a column too: a loop over no steps gives nothing to stack.
        longest = tf.maximum(tf.reduce_max(lengths, axis=0), 1)
        points = tf.pad(points, [[0, 0], [0, 1], [0, 0]])[:, :longest]
        real = tf.sequence_mask(lengths, longest)[:, :, None]
        # What is drawn for a row depends on nothing but its points and the seed.
        text = tf.where(real, tf.strings.as_string(points) + " ", "")
        text = tf.strings.reduce_join(text, axis=[1, 2])
        keys = tf.strings.to_hash_bucket_fast(text, 2**31 - 1)
        if self._normalise:
            points = normalised(points, lengths)
        return as_read(points, lengths), tf.cast(keys, tf.int32)

    def _checks(self, points: tf.Tensor, lengths: tf.Tensor) -> list[Any]:
        width = tf.shape(points)[1]
        real = tf.sequence_mask(lengths, width)
        finite = tf.reduce_all(tf.math.is_finite(points), axis=2) | ~real
        told = "the numbers of points of all rows that were sent:"
        rules = [
            (
                lengths >= self._least,
                f"a row has fewer than the {self._least} points of model.least",
            ),
            (
                lengths <= self._most,
                f"a row has more than the {self._most} points of max_source_length",
            ),
            (lengths <= width, "points_length is more than the points that were sent"),
        ]
        checks = [
            tf.debugging.Assert(tf.reduce_all(fine), [f"{message}; {told}", lengths], summarize=20)
            for fine, message in rules
        ]
        bad = tf.where(~tf.reduce_all(finite, axis=1))[:, 0]
        message = "points that are no finite numbers; in the rows, counted from 0:"
        return [*checks, tf.debugging.Assert(tf.reduce_all(finite), [message, bad], summarize=20)]

    def _find(self, read: tf.Tensor, lengths: tf.Tensor, keys: tf.Tensor) -> Hypotheses:
        return self._model.search(read, self._search, lengths + 1, keys=keys)

    def _best(self, found: Hypotheses, width: tf.Tensor) -> dict[str, tf.Tensor]:
        length = found.lengths[:, 0] - 1
        return {
            "positions": _positions(found.ids[:, 0], length, width),
            "length": length,
            "score": found.log_probabilities[:, 0],
        }


def _positions(ids: tf.Tensor, lengths: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Positions ``[..., width]`` of ids ``[..., steps]``, of which so many are no end."""
    real = tf.sequence_mask(lengths, tf.shape(ids)[-1])
    found = tf.where(real, tf.cast(ids, tf.int32) - FIRST, NOWHERE)
    padding = [[0, 0]] * (len(ids.shape) - 1) + [[0, width]]
    return tf.pad(found, padding, constant_values=NOWHERE)[..., :width]
