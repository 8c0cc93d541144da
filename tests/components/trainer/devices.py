"""Trainings on several devices, in a process of their own: TensorFlow is told of them but once.

``python -m tests.components.trainer.devices FOLDER DATA TRAININGS`` trains, one after the other, on
as many devices or workers as the environment says. TRAININGS is JSON: the name of each with the
arguments of ``train``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from components.trainer.checkpoint import Checkpoints, NoCheckpoints, Position
from components.trainer.data import Batches
from components.trainer.fitting import fit
from components.trainer.optimizer import compile_model
from components.trainer.seeding import seed
from components.trainer.shares import shared
from components.trainer.team import Team, join
from components.trainer.together import Together
from tests.components.trainer.records import SPEC, write
from tests.components.trainer.tiny import Tiny, settings

DEVICES = "TEST_DEVICES"


class Killed(Exception):
    pass


def write_rows(folder: Path) -> None:
    """A train split in two files, of rows of all lengths and of unlike size, and an eval split."""
    random = np.random.default_rng(0)
    pairs = [(list(i), list(i)) for n in range(157) for i in [random.integers(4, 12, 2 + n % 9)]]
    write(folder / "train-0.gz", pairs[:70])
    write(folder / "train-1.gz", pairs[70:117])
    write(folder / "eval.gz", pairs[117:])


def batches(folder: Path, split: str) -> Batches:
    """A split that ``write_rows`` wrote: ``train-0``, ``train`` or ``eval``."""
    return Batches([str(folder / f"{split}*.gz")], SPEC, Tiny(), 160, 20, seed=5)


def team() -> Team | None:
    """The devices that the environment says."""
    if "TF_CONFIG" in os.environ:
        return join()
    count = int(os.environ.get(DEVICES, "1"))
    if count == 1:
        return None
    (cpu,) = tf.config.list_physical_devices("CPU")
    one = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [one] * count)
    return Team(tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)]))


def train(
    folder: Path,
    data: Path,
    devices: Team | None,
    changes: dict[str, Any],
    dropout: float = 0.0,
    split: str = "train-0",
    killed_at: int = 0,
    decoded: bool = False,
    shares: Any = None,
) -> tuple[keras.Model, Position]:
    """Trains, or goes on, and writes down how.

    Args:
        folder: for the checkpoints and what comes out of it.
        data: of ``write_rows``.
        devices: None for one.
        changes: of the settings.
        dropout: of the model.
        split: what is trained on: all files or one.
        killed_at: the write of a checkpoint at which the training ends and is begun again.
        decoded: whether there is a BLEU, which only the chief may ask for.
        shares: what stands for the split's batches.
    """
    training = settings(**changes)
    seed(training)

    def build() -> Any:
        return Tiny().build({"dropout": dropout}, training, {})

    model = build()
    compile_model(model, training)
    rows = shares or batches(data, split)
    together = None
    if devices is not None:
        together, rows = Together(devices, model, build), shared(rows, devices)
    chief = devices is None or devices.chief
    checkpoints = (Checkpoints if chief else NoCheckpoints)(folder / "ck")
    if killed_at:
        _kill(checkpoints, killed_at)
    try:
        position = fit(
            model,
            rows,
            batches(data, "eval"),
            training,
            checkpoints,
            f"{folder}/log",
            _size if decoded and chief else None,
            together,
        )
    except Killed:
        return train(folder, data, devices, changes, dropout, split, decoded=decoded)
    if chief:
        (folder / "position.json").write_text(json.dumps(vars(position)))
        np.savez(folder / "weights.npz", *model.get_weights())
    return model, position


def _size(model: keras.Model) -> dict[str, float]:
    """Stands for a BLEU: a number that the weights alone decide."""
    return {"bleu": 100 * float(np.mean([np.abs(w).mean() for w in model.get_weights()]))}


def _kill(checkpoints: Checkpoints, number: int) -> None:
    """Lets the write of that number, and the process with it, come to nothing."""
    write, calls = checkpoints.save, []

    def save(model: keras.Model, position: Position) -> None:
        calls.append(position.step)
        if len(calls) == number:
            raise Killed
        write(model, position)

    checkpoints.save = save  # type: ignore[method-assign]


def main(folder: str, data: str, trainings: str) -> None:
    """Trains all that is asked for, each in a folder of its name."""
    devices = team()
    for name, arguments in json.loads(trainings).items():
        (Path(folder) / name).mkdir(exist_ok=True)
        train(Path(folder) / name, Path(data), devices, **arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # as a worker's process ends: the others may be gone
