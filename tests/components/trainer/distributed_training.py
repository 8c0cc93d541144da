"""Trainings on several devices, in a process of their own: TensorFlow configures devices once.

``python -m tests.components.trainer.distributed_training FOLDER DATA TRAININGS`` trains one model
after the other, on the devices or workers that the environment names. TRAININGS is JSON: for each
name the arguments of ``train``.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from regard.components.trainer.batches import Batches
from regard.components.trainer.checkpoint import Checkpoints, NoCheckpoints, TrainState
from regard.components.trainer.distributed import (
    DistributedTrainStep,
    StrategyGroup,
    connect_workers,
)
from regard.components.trainer.distributed_worker import WorkerSpec
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.training_loop import fit, set_seed
from regard.models.tasks.text_to_text.settings import TextToTextModelConfig
from tests.components.trainer.pairs import write_pairs
from tests.components.trainer.tiny_training import TinyTask, training_config

DEVICE_COUNT = "TEST_DEVICES"


class KilledError(Exception):
    """Stands for the end of the process."""


def write_splits(folder: Path) -> None:
    """Write a train split, with rows of all lengths, and an eval split."""
    random = np.random.default_rng(0)
    pairs = [(list(i), list(i)) for n in range(157) for i in [random.integers(4, 12, 2 + n % 9)]]
    write_pairs(folder / "train.arrow", pairs[:70])
    write_pairs(folder / "eval.arrow", pairs[117:])


def split_batches(folder: Path, split: str, group: StrategyGroup | None = None) -> Batches:
    """The batches of ``train`` or ``eval``, which ``write_splits`` has written."""
    sharing = group.sharing if group else None
    return Batches([str(folder / f"{split}.arrow")], TinyTask(), 160, 20, seed=5, sharing=sharing)


def device_group() -> StrategyGroup | None:
    """The devices that the environment names."""
    if "TF_CONFIG" in os.environ:
        spec = WorkerSpec.from_environment(os.environ)
        return connect_workers(spec.index, len(spec.addresses))
    count = int(os.environ.get(DEVICE_COUNT, "1"))
    if count == 1:
        return None
    (cpu,) = tf.config.list_physical_devices("CPU")
    logical = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [logical] * count)
    return StrategyGroup(tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)]))


def train(
    folder: Path,
    data: Path,
    group: StrategyGroup | None,
    changes: dict[str, Any],
    dropout: float = 0.0,
    killed_at: int = 0,
    with_metric: bool = False,
) -> tuple[keras.Model, TrainState]:
    """Train or resume, and write the final state and weights.

    Args:
        folder: for the checkpoints and the results.
        data: the folder of ``write_splits``.
        group: None for one device.
        changes: of the settings.
        dropout: of the model.
        killed_at: the number of the checkpoint at which the training is killed and resumed.
        with_metric: whether evaluations compute a BLEU, which only the chief may do.
    """
    training = training_config(**changes)
    set_seed(training)

    def build() -> Any:
        return TinyTask().build(TextToTextModelConfig(dropout=dropout), training, {})

    model = build()
    compile_model(model, training)
    step = DistributedTrainStep(group, model, build) if group is not None else None
    is_chief = group is None or group.is_chief
    checkpoints = (Checkpoints if is_chief else NoCheckpoints)(folder / "ck")
    if killed_at:
        _kill_at_save(checkpoints, killed_at)
    try:
        state = fit(
            model,
            split_batches(data, "train", group),
            split_batches(data, "eval"),
            training,
            checkpoints,
            f"{folder}/log",
            _weight_size if with_metric and is_chief else None,
            step,
        )
    except KilledError:
        return train(folder, data, group, changes, dropout, with_metric=with_metric)
    if is_chief:
        (folder / "state.json").write_text(json.dumps(vars(state)))
        np.savez(folder / "weights.npz", *model.get_weights())
    return model, state


def start_process(
    folder: Path, data: Path, trainings: dict[str, Any], **environment: str
) -> subprocess.Popen:
    """Start ``main`` in a process of its own."""
    module = "tests.components.trainer.distributed_training"
    return subprocess.Popen(
        [sys.executable, "-m", module, str(folder), str(data), json.dumps(trainings)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(*processes: subprocess.Popen) -> None:
    """Wait until the processes have ended without an error."""
    for process in processes:
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0, output


def _weight_size(model: keras.Model) -> dict[str, float]:
    """Stands for a BLEU: a number that depends on nothing but the weights."""
    return {"bleu": 100 * float(np.mean([np.abs(w).mean() for w in model.get_weights()]))}


def _kill_at_save(checkpoints: Checkpoints, number: int) -> None:
    """Let the checkpoint of this number fail, and the process with it."""
    write, steps = checkpoints.save, []

    def save(model: keras.Model, state: TrainState) -> None:
        steps.append(state.step)
        if len(steps) == number:
            raise KilledError
        write(model, state)

    checkpoints.save = save  # type: ignore[method-assign]


def main(folder: str, data: str, trainings: str) -> None:
    """Train all models, each in a folder of its name."""
    group = device_group()
    for name, arguments in json.loads(trainings).items():
        (Path(folder) / name).mkdir(exist_ok=True)
        train(Path(folder) / name, Path(data), group, **arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # like a worker process: other workers may be gone
