"""What pointers do with points, and the model that is built for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from models.decoders.pointer import FIRST, PointerDecoder
from models.encoders import ENCODERS
from models.search import GreedySearch
from models.seq2seq import Seq2Seq
from models.serialization import by_name
from models.tasks.base import Answering, Task, policy_of
from models.tasks.pointer import DESCRIPTION
from models.tasks.pointer.points import as_read, normalised
from models.tasks.pointer.served import ServedPointer
from models.tasks.served import Served, with_signature
from models.vocabulary import EOS


class Pointing(Task):
    """Points to positions among them: sorting, hulls, tours, whatever names its own inputs."""

    description = DESCRIPTION

    def preprocess(
        self, inputs: Mapping[str, Any], tokenizers: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Points → ``points`` (ragged floats x0 y0 x1 y1 ...); the answer → ``answer_ids``.

        An answer that breaks the rule of ``visits`` has no ids: no model could give it.
        """
        flat = _ragged(inputs["points"])
        lengths = flat.row_lengths() // 2
        dense = flat.to_tensor()
        batch, width = tf.shape(dense)[0], tf.shape(dense)[1]
        if settings["normalise"]:
            pairs = tf.reshape(dense, [batch, width // 2, 2])
            dense = tf.reshape(normalised(pairs, lengths), [batch, width])
        positions = _ragged(inputs["answer"])
        fine = _allowed(positions, lengths, settings["visits"])
        kept = tf.where(fine, positions.row_lengths(), 0)
        ids = tf.cast(positions.to_tensor() + FIRST, tf.int64)
        return {
            "points": tf.RaggedTensor.from_tensor(dense, lengths=2 * lengths),
            "answer_ids": tf.RaggedTensor.from_tensor(ids, lengths=kept),
        }

    def length(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The number of points and the end."""
        return tf.size(features["points"]) // 2 + 1

    def is_complete(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """There are points, and an answer that can be given."""
        return (tf.size(features["points"]) > 0) & (tf.size(features["answer_ids"]) > 0)

    def model_inputs(self, features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """``source`` ``[n, 3]``, the points, and ``target``, the answer's ids with EOS behind."""
        points = tf.reshape(features["points"], [1, -1, 2])
        ids = tf.cast(features["answer_ids"], tf.int32)
        source = as_read(points, tf.shape(points)[1:2])[0]
        return {"source": source, "target": tf.concat([ids, [EOS]], 0)}

    def asked(
        self, features: Mapping[str, tf.Tensor], tokenizers: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {"points": tf.reshape(features["points"], [-1, 2]).numpy()}

    def build(
        self, model: Mapping[str, Any], training: Mapping[str, Any], pieces: Mapping[str, int]
    ) -> Seq2Seq:
        policy = policy_of(training)
        common = {"dropout": model["dropout"], "dtype": policy}
        settings = dict(model["encoder"])
        make = by_name("encoder", ENCODERS, settings.pop("type"))
        encoder = make(None, embedding=model["width"], **settings, **common)
        decoder = PointerDecoder(
            encoder.depth,
            encoder.final_depth,
            visits=model["visits"],
            **model["decoder"],
            **common,
        )
        seq2seq = Seq2Seq(encoder, decoder, dtype=policy)
        seq2seq.build()
        return seq2seq

    def answering(
        self, model: Seq2Seq, tokenizers: Mapping[str, Any], config: Mapping[str, Any]
    ) -> Answering:
        find = GreedySearch()

        @with_signature([tf.TensorSpec([None, None, 3], tf.float32)])
        def best(source: tf.Tensor) -> tf.Tensor:
            lengths = tf.cast(tf.reduce_sum(source[:, :, 2], axis=1), tf.int32)
            return model.search(source, find, lengths + 1).ids[:, 0]

        def positions(ids: tf.Tensor) -> list[list[int]]:
            return [[int(i) - FIRST for i in row if i >= FIRST] for row in ids.numpy()]

        def answer(batch: Mapping[str, tf.Tensor]) -> tuple[list[Any], list[list[Any]]]:
            wanted = positions(batch["target"])
            return positions(best(batch["source"])), [[row] for row in wanted]

        return answer

    def served(
        self, model: Seq2Seq, tokenizers: Mapping[str, Any], config: Mapping[str, Any]
    ) -> Served:
        module = ServedPointer(model, config["model"], config["search"])
        return module.served(self.description.name)


def _ragged(column: Any) -> tf.RaggedTensor:
    """A column of a batch, whatever it came as: where all rows are alike it is dense."""
    if isinstance(column, tf.RaggedTensor):
        return column
    if isinstance(column, tf.SparseTensor):
        return tf.RaggedTensor.from_sparse(column)
    return tf.RaggedTensor.from_tensor(column)


def _allowed(positions: tf.RaggedTensor, lengths: tf.Tensor, visits: str) -> tf.Tensor:
    """Which answers can be given at all, ``[batch]``."""
    counts = positions.row_lengths()
    if visits == "any":
        return counts <= lengths
    # Sorted, what is there twice stands side by side; padding comes last.
    last = positions.dtype.max
    ordered = tf.sort(positions.to_tensor(last), axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != last)
    once = ~tf.reduce_any(twice, axis=1)
    return once & (counts == lengths) if visits == "all" else once


TASK = Pointing()
