"""Measure how long a checkpoint stops a training: written in the background, or by the training.

    python -m benchmarks.checkpoints

Trains a Transformer of 6 + 6 layers of width 512 with 8,000 tokens (48 million parameters) on
random tokens, and saves a checkpoint of the complete state, 0.6 GB, in every round and mode. "copy"
is the processor time of the copy in memory; "stop" is the time until the training can continue;
"loss" is the time of the steps from the checkpoint until its file is complete, and at least three,
above that of as many median steps. The ratios compare modes of the same round, since the speed of a
shared machine changes.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np

from benchmarks.markdown_table import format_table, median_ratio
from regard.components.trainer.checkpoint import Checkpoints, TrainState
from regard.components.trainer.optimizer import compile_model
from regard.models import tasks
from regard.models.settings.training import TrainingConfig

_LAYERS = {"type": "transformer", "layers": 6, "heads": 8, "feed_forward": 2048}
_MODEL = {"embedding": 512, "tie_embeddings": "all", "encoder": _LAYERS, "decoder": _LAYERS}
_VOCABULARY = 8000
_MODES = ("written by the training", "in the background")
_STEPS_BEFORE, _MIN_STEPS = 3, 3


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the files are written; default: /tmp")
    arguments = parser.parse_args()
    network, training = tasks.get_network("translation"), TrainingConfig()
    keras.utils.set_random_seed(1)
    model = network.build(
        network.description.model.model_validate(_MODEL),
        training,
        {"source": _VOCABULARY, "target": _VOCABULARY},
    )
    compile_model(model, training)
    numbers = np.random.default_rng(1)
    batch = {side: numbers.integers(4, _VOCABULARY, (16, 25)) for side in ("source", "target")}
    model.train_on_batch(batch)
    print(f"{model.count_params():,} parameters")
    rows, stops, losses = [], [], []
    for number in range(arguments.rounds):
        results = []
        for mode in _MODES:
            with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
                results.append(measure(model, batch, Path(folder), mode == _MODES[1]))
        stops.append([result["stop"] for result in results])
        losses.append([result["loss"] for result in results])
        for mode, result in zip(_MODES, results, strict=True):
            cells = (f"{result[name]:.2f}" for name in ("step", "copy", "stop", "loss"))
            rows.append([f"{number + 1}: {mode}", *cells])
    print(
        format_table(["round", "median step, s", "copy, processor s", "stop, s", "loss, s"], rows)
    )
    for name, values in (("stop", stops), ("loss", losses)):
        blocking, background = zip(*values, strict=True)
        print(f"{name}: {median_ratio(background, blocking):.2f} of that without background writes")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10:,} MiB")


def measure(model: Any, batch: Any, folder: Path, background: bool) -> dict[str, float]:
    """Train some steps, save a checkpoint, and train until it is complete."""
    checkpoints, plain, during = Checkpoints(folder), [], []
    for _ in range(_STEPS_BEFORE):
        plain.append(_step(model, batch))
    start, start_cpu = time.perf_counter(), time.thread_time()
    checkpoints.save(model, TrainState())
    copy = time.thread_time() - start_cpu
    if not background:
        checkpoints.close()
    stop = time.perf_counter() - start
    while not (folder / "last.npz").exists() or len(during) < _MIN_STEPS:
        during.append(_step(model, batch))
    checkpoints.close()
    for _ in range(_STEPS_BEFORE):
        plain.append(_step(model, batch))
    step = statistics.median(plain)
    loss = stop + sum(during) - step * len(during)
    return {"step": step, "copy": copy, "stop": stop, "loss": loss}


def _step(model: Any, batch: Any) -> float:
    start = time.perf_counter()
    model.train_on_batch(batch)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
