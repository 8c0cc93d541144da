"""A tiny training for a process of its own, whose state records the rows it has trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from regard.components.trainer.callbacks import TrainingProgress
from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.input_pipeline import Batches
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.training_loop import fit, set_seed
from tests.components.trainer.tfrecords import SPEC, write_tfrecords
from tests.components.trainer.tiny_training import BagModel, TinyTask, training_config

ROWS, EPOCHS = 120, 25
# Every part of the state that could be lost.
CHANGES = {
    "deterministic": True,
    "max_epochs": EPOCHS,
    "evaluate_every": 7,
    "ema": {"decay": 0.9},
    "checkpoint_averaging": {"checkpoints": 3, "of": "best"},
    "schedule": {"type": "plateau", "factor": 0.5, "patience": 1, "warmup_steps": 4},
    "early_stopping": {"patience": 999, "min_delta": 0.02},
}


class RecordingModel(BagModel):
    """Records in its weights, and so in each checkpoint, what it has been trained on.

    ``counts`` ``[epochs, rows]`` counts how often each row was used, ``order`` ``[batches]`` holds
    one number per batch that depends on its content, ``done`` is the number of batches.
    """

    def __init__(self, epochs: int, batches: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.epochs, self.batches = epochs, batches

    def build(self, shape=None):
        options = {"initializer": "zeros", "dtype": "int32", "trainable": False}
        self.counts = self.add_weight(shape=(self.epochs, ROWS), name="counts", **options)
        self.order = self.add_weight(shape=(self.epochs * self.batches,), name="order", **options)
        self.completed = self.add_weight(shape=(), name="done", **options)
        super().build(shape)

    def train_step(self, data):
        completed, source = ops.convert_to_tensor(self.completed), data["source"]
        rows = row_numbers(source)
        indices = ops.stack([ops.full_like(rows, completed // self.batches), rows], axis=1)
        self.counts.assign_add(ops.scatter(indices, ops.ones_like(rows), self.counts.shape))
        places = ops.arange(1, 1 + ops.shape(rows)[0], dtype="int32")
        content = ops.sum(places * (1 + rows)) + 1000 * ops.sum(source) + ops.sum(data["target"])
        self.order.assign_add(ops.one_hot(completed, self.order.shape[0], dtype="int32") * content)
        self.completed.assign(completed + 1)
        return super().train_step(data)


def row_numbers(source: Any) -> Any:
    """The number of each row, whose digits are its first three tokens."""
    digits = source[:, :3] - 4
    return digits[:, 0] * 64 + digits[:, 1] * 8 + digits[:, 2]


def write_splits(folder: Path) -> None:
    """Write a train split of numbered rows of all lengths, and an eval split."""
    random = np.random.default_rng(0)
    pairs = []
    for row in range(ROWS):
        digits = [4 + row // 64, 4 + row // 8 % 8, 4 + row % 8]
        ids = digits + random.integers(4, 12, row % 9).tolist()
        pairs.append((ids, ids))
    write_tfrecords(folder / "train.gz", pairs)
    write_tfrecords(folder / "eval.gz", pairs[::4])


def run(folder: str, data: str, batch_counter: Any) -> None:
    """Train to the end, or resume.

    Args:
        folder: of this training.
        data: the folder of ``write_splits``.
        batch_counter: a shared number, increased after each batch.
    """
    on_train_batch_end = TrainingProgress.on_train_batch_end

    def count(self: TrainingProgress, batch: int, logs: Any = None) -> None:
        on_train_batch_end(self, batch, logs)
        batch_counter.value += 1

    TrainingProgress.on_train_batch_end = count  # type: ignore[method-assign]
    training = training_config(**CHANGES, checkpoint_seconds=0.02)
    set_seed(training)
    train, evaluation = (
        Batches([f"{data}/{name}.gz*"], SPEC, TinyTask(), 160, 20, seed=5)
        for name in ("train", "eval")
    )
    model = RecordingModel(EPOCHS, train.size(), dtype=keras.DTypePolicy("float32"))
    model.build()
    compile_model(model, training)
    checkpoints = Checkpoints(Path(folder) / "ck")
    state = fit(model, train, evaluation, training, checkpoints, f"{folder}/log")
    np.savez(Path(folder) / "end.npz", *model.get_weights())
    (Path(folder) / "state.json").write_text(json.dumps(vars(state)))
