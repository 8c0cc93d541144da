"""Train Regard or a model of Keras's or KerasHub's layers in this process, and time every batch.

`benchmarks/training.py` starts this process with a request as JSON on standard input: the model,
the settings, and the number of seconds. The result is one line of JSON.

Regard uses the batches, the model and the optimizer of its Trainer, with Keras's `fit`. The other
models get the same batches.
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

from benchmarks import hardware_limits, workload
from benchmarks.peers import keras_models
from regard.components.trainer.batches import Batches
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.tensor_batches import epoch_dataset
from regard.components.trainer.training_loop import set_seed
from regard.models import tasks
from regard.models.schedules import schedule
from regard.models.settings.training import TrainingConfig
from regard.models.vocabulary import PAD

_WARM_UP = 8


def main() -> None:
    """Train, and print the result."""
    request = json.load(sys.stdin)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["threads"]])
    print(json.dumps(train(request)))


def train(request: Mapping[str, Any]) -> dict[str, Any]:
    """Train for the requested seconds, not counting the warm-up."""
    folder, training = Path(request["folder"]), request["training"]
    set_seed(TrainingConfig.model_validate(training))
    data = Batches(
        [str(folder / workload.ROWS)],
        tasks.get_network("translation"),
        batch_tokens=training["batch_tokens"],
        max_length=training["max_length"],
        seed=training["seed"],
        fixed_shapes=training["jit_compile"],
    )
    vocabulary_size = len(workload.vocabulary(folder))
    if is_regard := request["program"] == "regard":
        model = _build_regard(request["model"], training, vocabulary_size)
    else:
        model = _build_keras(request, vocabulary_size)
    before = hardware_limits.tensorflow_rates()
    clock = Clock(request["seconds"], training["jit_compile"])
    epoch = 0
    while not clock.is_over:
        clock.start_epoch([_size(batch) for batch in epoch_dataset(data, epoch)])
        # The same batches: reading a data set again shuffles it again.
        batches = epoch_dataset(data, epoch)
        if not is_regard:
            batches = batches.map(keras_models.convert_batch)
        model.fit(batches, shuffle=False, verbose=0, callbacks=[clock])
        epoch += 1
    return {
        "batches": clock.measured,
        "tokens_per_batch": clock.tokens_per_batch,
        "accuracy_tokens": clock.accuracy_tokens,
        "accuracy": clock.accuracy,
        "parameters": model.count_params(),
        "rates": hardware_limits.mean_rates(before, hardware_limits.tensorflow_rates()),
    }


class Clock(keras.callbacks.Callback):
    """Measures the time of every batch, from the end of the previous one to its own.

    The first batches are not counted, and with XLA the first one of every shape.

    Attributes:
        measured: seconds and target tokens of each batch.
        accuracy: the share of the first target tokens that the model predicted correctly, including
            those of batches that are not counted.
        accuracy_tokens: the number of these tokens.
        tokens_per_batch: target tokens, over whole epochs.
        is_over: whether the time is up.
    """

    def __init__(self, seconds: float, compiled: bool):
        super().__init__()
        self._left, self._compiled = seconds, compiled
        self._shapes: set[Any] = set()
        self._before, self._batch, self._count = 0.0, 0, 0
        self._expected: list[tuple[Any, int]] = []
        self.measured: list[tuple[float, int]] = []
        self.tokens_per_batch, self.accuracy_tokens, self.accuracy, self.is_over = (
            0.0,
            0,
            0.0,
            False,
        )

    def start_epoch(self, sizes: list[tuple[Any, int]]) -> None:
        """Set the shape and the target tokens of each batch of the next epoch."""
        self._expected, self._batch = sizes, 0
        self.tokens_per_batch = sum(tokens for _, tokens in sizes) / len(sizes)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._before = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        now = time.perf_counter()
        passed = self._expected[self._batch : batch + 1]  # Keras may run several batches per call
        self._batch = batch + 1
        self._count += len(passed)
        new = {shape for shape, _ in passed} - self._shapes
        self._shapes |= new
        tokens = sum(count for _, count in passed)
        if self.accuracy_tokens < workload.ACCURACY_TOKENS:
            self.accuracy_tokens += tokens
            self.accuracy = float((logs or {})["accuracy"])
        if self._count > _WARM_UP and not (self._compiled and new):
            self.measured.append((now - self._before, tokens))
            self._left -= now - self._before
        if self._left <= 0:
            self.is_over = self.model.stop_training = True
        self._before = time.perf_counter()


def _size(batch: Mapping[str, tf.Tensor]) -> tuple[Any, int]:
    shape = tuple(tuple(batch[side].shape) for side in ("source", "target"))
    return shape, int(tf.math.count_nonzero(batch["target"] != PAD))


def _build_regard(
    model: Mapping[str, Any], training: Mapping[str, Any], vocabulary_size: int
) -> keras.Model:
    sizes = {"source": vocabulary_size, "target": vocabulary_size}
    network, config = tasks.get_network("translation"), TrainingConfig.model_validate(training)
    regard_model = network.build(network.description.model.model_validate(model), config, sizes)
    compile_model(regard_model, config)
    return regard_model


def _build_keras(request: Mapping[str, Any], vocabulary_size: int) -> keras.Model:
    model, training = request["model"], request["training"]
    if request["program"] == "keras-hub":
        sys.path.append(request["keras_hub"])
    keras.config.set_dtype_policy(training["precision"])
    build = keras_models.builder_for(request["program"], model)
    keras_model = build(model, vocabulary_size, training["max_length"])
    keras_model.compile(
        optimizer=keras.optimizers.Adam(
            schedule(training["learning_rate"], training["schedule"], 1, None),
            global_clipnorm=training["clip_norm"],
        ),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        jit_compile=training["jit_compile"],
    )
    return keras_model


if __name__ == "__main__":
    main()
