"""A tiny training for a process of its own, whose state tells which rows have made it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from components.trainer.checkpoint import Checkpoints
from components.trainer.data import Batches
from components.trainer.fitting import fit
from components.trainer.optimizer import compile_model
from components.trainer.pulse import Pulse
from components.trainer.seeding import seed
from tests.components.trainer.records import SPEC, write
from tests.components.trainer.tiny import Bag, Tiny, settings

ROWS, EPOCHS = 120, 25
# Everything that can go wrong in a state: what is in it, and what is beside it.
CHANGES = {
    "deterministic": True,
    "max_epochs": EPOCHS,
    "evaluate_every": 7,
    "ema": {"decay": 0.9},
    "average": {"checkpoints": 3, "of": "best"},
    "schedule": {"type": "plateau", "factor": 0.5, "patience": 1, "warmup_steps": 4},
    "early_stop": {"patience": 999, "min_delta": 0.02},
}


class Diary(Bag):
    """Keeps among its weights, and so in each checkpoint, what it has been trained on.

    ``counts`` ``[epochs, rows]`` are how often a row was seen, ``order`` one number a batch that
    its content gives; ``done`` is the number of batches.
    """

    def __init__(self, epochs: int, batches: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.epochs, self.batches = epochs, batches

    def build(self, shape=None):
        make = {"initializer": "zeros", "dtype": "int32", "trainable": False}
        self.counts = self.add_weight(shape=(self.epochs, ROWS), name="counts", **make)
        self.order = self.add_weight(shape=(self.epochs * self.batches,), name="order", **make)
        self.done = self.add_weight(shape=(), name="done", **make)
        super().build(shape)

    def train_step(self, data):
        done, source = ops.convert_to_tensor(self.done), data["source"]
        rows = numbers(source)
        seen = ops.stack([ops.full_like(rows, done // self.batches), rows], axis=1)
        once = ops.scatter(seen, ops.ones_like(rows), self.counts.shape)
        self.counts.assign_add(once)
        places = ops.arange(1, 1 + ops.shape(rows)[0], dtype="int32")
        content = ops.sum(places * (1 + rows)) + 1000 * ops.sum(source) + ops.sum(data["target"])
        self.order.assign_add(ops.one_hot(done, self.order.shape[0], dtype="int32") * content)
        self.done.assign(done + 1)
        return super().train_step(data)


def numbers(source: Any) -> Any:
    """The number of each row, which its first three pieces are the digits of."""
    digits = source[:, :3] - 4
    return digits[:, 0] * 64 + digits[:, 1] * 8 + digits[:, 2]


def write_rows(folder: Path) -> None:
    """A train split of rows that tell their numbers, of all lengths, and an eval split."""
    random = np.random.default_rng(0)
    made = []
    for row in range(ROWS):
        digits = [4 + row // 64, 4 + row // 8 % 8, 4 + row % 8]
        ids = digits + random.integers(4, 12, row % 9).tolist()
        made.append((ids, ids))
    write(folder / "train.gz", made)
    write(folder / "eval.gz", made[::4])


def run(folder: str, rows: str, batches_done: Any) -> None:
    """Trains, or goes on, to the end.

    Args:
        folder: of this training.
        rows: the folder that ``write_rows`` wrote to.
        batches_done: a shared number that is raised after each batch.
    """
    watched = Pulse.on_train_batch_end

    def tell(self: Pulse, batch: int, logs: Any = None) -> None:
        watched(self, batch, logs)
        batches_done.value += 1

    Pulse.on_train_batch_end = tell  # type: ignore[method-assign]
    training = settings(**CHANGES, checkpoint_seconds=0.02)
    seed(training)
    train, held_out = (
        Batches([f"{rows}/{name}.gz*"], SPEC, Tiny(), 160, 20, seed=5) for name in ("train", "eval")
    )
    model = Diary(EPOCHS, train.size(), dtype=keras.DTypePolicy("float32"))
    model.build()
    compile_model(model, training)
    checkpoints = Checkpoints(Path(folder) / "ck")
    position = fit(model, train, held_out, training, checkpoints, f"{folder}/log")
    np.savez(Path(folder) / "end.npz", *model.get_weights())
    (Path(folder) / "position.json").write_text(json.dumps(vars(position)))
