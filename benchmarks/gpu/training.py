"""Part ``training``: the speed of the product's training steps on JAX.

The model, the optimizer, the step and the callbacks are those of the Trainer. The rows are cut from
Tatoeba's train split, all of one length, and the batches are read before the measurement, so that
it is the device that is measured; part ``multi30k`` includes padding and reading.

So far, this part has run on CPUs only, in its small size.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import hardware_limits
from benchmarks.gpu import device, searching
from benchmarks.gpu.folder import TATOEBA, Settings, make_batches, pack_rows, read_split
from benchmarks.gpu.sizes import Size
from regard.components.trainer.backends import current_backend
from regard.components.trainer.batches import Batches
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.training_loop import set_seed
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.text_to_text.settings import TextToTextModelConfig

# In this order, the memory of each is more than that of the one before.
PRECISIONS = ("mixed_bfloat16", "float32")
_FORMATS = {"mixed_bfloat16": "bfloat16", "float32": "float32"}
_GIGA, _TERA = 1e9, 1e12


def measure(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Train a model in each precision, and yield a row for each.

    Args:
        folder: the prepared folder.
        name: the name of one of ``Size.models``.
    """
    settings = Settings.read(folder)
    size = settings.sizes
    rates = device.matrix_rates(size.matrix_side, seconds=min(1.0, size.steps / 60))
    for precision in PRECISIONS:
        row = train(folder, settings, size.models[name], precision)
        rate = rates[_FORMATS[precision]]
        share = row["tflops"] * _TERA / rate
        yield {
            "system": "regard",
            "model": name,
            "precision": precision,
            **row,
            "matrix_tflops": round(rate / _TERA, 2),
            "share_of_matrix_rate": round(share, 4),
        }


def train(
    folder: Path, settings: Settings, model_section: Mapping[str, Any], precision: str
) -> dict[str, Any]:
    """Train a model, and return its speed."""
    size, vocabulary = settings.sizes, settings.vocabulary_sizes[TATOEBA]
    training = TrainingConfig.model_validate(
        {
            "precision": precision,
            "learning_rate": 0.0005,
            "schedule": {"type": "constant"},
            "label_smoothing": 0.1,
            "clip_norm": 1.0,
            "seed": 17,
        }
    )
    with tempfile.TemporaryDirectory() as temporary:
        batches = read_batches(Path(temporary, "rows.arrow"), folder, size)
        data: Any = current_backend().data(batches)
        measured = data.evaluation()  # reads every batch into memory
        first, warm_up = data.epoch(0, numbers=np.arange(1)), data.epoch(0, numbers=np.arange(2))
        set_seed(training)
        start = time.perf_counter()
        model = searching.build_model(model_section, training, vocabulary)
        compile_model(model, training)
        loss_before = fit(model, first)
        seconds_to_first_step = time.perf_counter() - start
        fit(model, warm_up)
        start = time.perf_counter()
        loss_after = fit(model, measured)
        seconds = time.perf_counter() - start
    tokens = size.batch_rows * size.length
    tflops = step_operations(model_section, size, vocabulary) * len(measured) / seconds / _TERA
    peak = device.peak_memory()
    return {
        "tokens_per_second": round(tokens * len(measured) / seconds),
        "milliseconds_per_step": round(1000 * seconds / len(measured), 3),
        "tflops": round(tflops, 4),
        "memory_gigabytes": None if peak is None else round(peak / _GIGA, 2),
        "seconds_to_first_step": round(seconds_to_first_step, 2),
        "loss_before": round(loss_before, 4),
        "mean_loss": round(loss_after, 4),
        "parameters": int(model.count_params()),
        "tokens_per_step": tokens,
    }


def read_batches(path: Path, folder: Path, size: Size) -> Batches:
    """Return the batches of the measured steps, all of the same shape."""
    count = size.batch_rows * size.steps
    return make_batches(
        path,
        pack_rows(read_split(folder, TATOEBA, "train"), size.length, count),
        batch_tokens=2 * size.length * size.batch_rows,
        max_length=size.length,
        seed=17,
        growth=size.length,  # one bucket for all lengths above 8
    )


def fit(model: Any, batches: Any) -> float:
    """Train on batches with the Trainer's callbacks, and return the mean loss."""
    model.reset_metrics()
    callbacks = current_backend().callbacks([], model)
    model.fit(batches, shuffle=False, verbose=0, callbacks=callbacks)
    return float(model.loss_mean.result())


def step_operations(model_section: Mapping[str, Any], size: Size, vocabulary: int) -> float:
    """Return the operations of the matrix products of a training step."""
    section = TextToTextModelConfig.model_validate(dict(model_section)).model_dump()
    lengths = np.full(size.batch_rows, size.length)
    operations = hardware_limits.count_operations(section, vocabulary, lengths, lengths)
    return hardware_limits.TRAINING_FACTOR * operations
