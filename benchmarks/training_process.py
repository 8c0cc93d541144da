"""Trains Regard or a plain Keras model in this process, and tells how long every batch took.

`benchmarks/training.py` starts it with a request as JSON on standard input: what to train, how,
and for how many seconds. It answers with one line of JSON.

Regard is what its Trainer has: its batches, its model and its optimizer, under Keras's `fit`. The
plain models get the same batches.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from benchmarks import limit, workload
from benchmarks.peers import keras_models
from components.trainer.data import Batches
from components.trainer.optimizer import compile_model
from components.trainer.seeding import seed
from models import tasks
from models.schedules import schedule
from models.vocabulary import PAD

_SPEC = {name: tf.io.RaggedFeature(tf.int64) for name in workload.FEATURES}
_WARM_UP = 8


def main() -> None:
    """Trains, and prints."""
    request = json.load(sys.stdin)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["threads"]])
    print(json.dumps(train(request)))


def train(request: Mapping[str, Any]) -> dict[str, Any]:
    """Trains for so many seconds, warming up not counted."""
    folder, training = Path(request["folder"]), request["training"]
    seed(training)
    data = Batches(
        [str(folder / workload.ROWS)],
        _SPEC,
        tasks.get("translation"),
        batch_tokens=training["batch_tokens"],
        max_length=training["max_length"],
        seed=training["seed"],
        fixed_shapes=training["jit_compile"],
    )
    pieces = len(workload.vocabulary(folder))
    make = _keras if request["program"] == "keras" else _regard
    model = make(request["model"], training, pieces)
    before = limit.tensorflow_rates()
    clock = Clock(request["seconds"], training["jit_compile"])
    epoch = 0
    while not clock.done:
        clock.expect([_size(batch) for batch in data.epoch(epoch)])
        batches = data.epoch(epoch)  # the same batches; one that is read again shuffles anew
        if request["program"] == "keras":
            batches = batches.map(keras_models.row)
        model.fit(batches, shuffle=False, verbose=0, callbacks=[clock])
        epoch += 1
    return {
        "batches": clock.measured,
        "pieces_a_batch": clock.pieces_a_batch,
        "known_of": clock.known_of,
        "accuracy": clock.accuracy,
        "parameters": model.count_params(),
        "rates": limit.mean(before, limit.tensorflow_rates()),
    }


class Clock(keras.callbacks.Callback):
    """Notes what every batch takes, from the end of the one before it to its own.

    Not counted: the first batches, and where XLA compiles the first one of every shape.

    Attributes:
        measured: seconds and target pieces of each batch.
        accuracy: the share of the first target pieces that the model knew, those not timed too.
        known_of: how many pieces these are.
        pieces_a_batch: target pieces, over whole epochs.
        done: whether the time is up.
    """

    def __init__(self, seconds: float, compiled: bool):
        super().__init__()
        self._left, self._compiled = seconds, compiled
        self._seen: set[Any] = set()
        self._before, self._batch, self._count = 0.0, 0, 0
        self._expected: list[tuple[Any, int]] = []
        self.measured: list[tuple[float, int]] = []
        self.pieces_a_batch, self.known_of, self.accuracy, self.done = 0.0, 0, 0.0, False

    def expect(self, sizes: list[tuple[Any, int]]) -> None:
        """Is told the shape and the target pieces of each batch of the epoch to come."""
        self._expected, self._batch = sizes, 0
        self.pieces_a_batch = sum(pieces for _, pieces in sizes) / len(sizes)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._before = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        now = time.perf_counter()
        passed = self._expected[self._batch : batch + 1]  # several, where Keras takes more at once
        self._batch = batch + 1
        self._count += len(passed)
        new = {shape for shape, _ in passed} - self._seen
        self._seen |= new
        pieces = sum(count for _, count in passed)
        if self.known_of < workload.FIRST:
            self.known_of += pieces
            self.accuracy = float((logs or {})["accuracy"])
        if self._count > _WARM_UP and not (self._compiled and new):
            self.measured.append((now - self._before, pieces))
            self._left -= now - self._before
        if self._left <= 0:
            self.done = self.model.stop_training = True
        self._before = time.perf_counter()


def _size(batch: Mapping[str, tf.Tensor]) -> tuple[Any, int]:
    shape = tuple(tuple(batch[side].shape) for side in ("source", "target"))
    return shape, int(tf.math.count_nonzero(batch["target"] != PAD))


def _regard(model: Mapping[str, Any], training: Mapping[str, Any], pieces: int) -> keras.Model:
    sizes = {"source": pieces, "target": pieces}
    built = tasks.get("translation").build(model, training, sizes)
    compile_model(built, training)
    return built


def _keras(model: Mapping[str, Any], training: Mapping[str, Any], pieces: int) -> keras.Model:
    keras.config.set_dtype_policy(training["precision"])
    make = keras_models.of(model)
    built = make(model, pieces, training["max_length"])
    built.compile(
        optimizer=keras.optimizers.Adam(
            schedule(training["learning_rate"], training["schedule"], 1, None),
            global_clipnorm=training["clip_norm"],
        ),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        jit_compile=training["jit_compile"],
    )
    return built


if __name__ == "__main__":
    main()
