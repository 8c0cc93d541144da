"""Part ``multi30k``: train the model of configs/multi30k-en-de-rotary.yaml with the Trainer's loop.

The batches, the loop, early stopping and the average of the last checkpoints are those of the
product, and so are its limits; ``max_minutes`` is added. ``score`` computes BLEU of the weights.

So far, this part has run on CPUs only, in its small size.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu import device, searching, weights_file
from benchmarks.gpu.folder import MULTI30K, Settings, make_batches, read_split
from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.epoch_plan import COARSE_GROWTH
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.training_loop import fit, set_seed
from regard.models.settings.training import TrainingConfig

_GIGA = 1e9


def train(folder: Path, weights: Path, minutes: float) -> Iterator[dict[str, Any]]:
    """Train the model, write its weights, and yield one row.

    Args:
        folder: the prepared folder.
        weights: the npz file to write.
        minutes: the limit on the training.
    """
    settings = Settings.read(folder)
    training = TrainingConfig.model_validate({**settings.training, "max_minutes": minutes})
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        splits = {
            split: make_batches(
                Path(temporary, f"{split}.arrow"),
                read_split(folder, MULTI30K, split),
                batch_tokens=int(training.batch_tokens),
                max_length=training.max_length,
                seed=training.seed,
                growth=COARSE_GROWTH,
            )
            for split in ("train", "eval")
        }
        set_seed(training)
        vocabulary = settings.vocabulary_sizes[MULTI30K]
        model = searching.build_model(settings.model, training, vocabulary)
        compile_model(model, training)
        checkpoints = Checkpoints(Path(temporary, "checkpoints"))
        checkpoints.create_folder()
        log_folder = str(Path(temporary, "logs"))
        state = fit(model, splits["train"], splits["eval"], training, checkpoints, log_folder)
        seconds = time.perf_counter() - start
    dtype = weights_file.write(weights, model.get_weights())
    peak = device.peak_memory()
    yield {
        "steps": state.step,
        "stop_reason": state.stop_reason,
        "seconds": round(seconds, 1),
        "training_seconds": round(state.seconds, 1),
        "tokens_per_second": round(state.tokens / max(state.seconds, 1e-9)),
        "eval_loss": round(float(state.history[-1]["loss"]), 4),
        # Without one if a single evaluation was reached.
        "average_loss": round(state.average["loss"], 4) if state.average else None,
        "memory_gigabytes": None if peak is None else round(peak / _GIGA, 2),
        "weights": weights.name,
        "weights_dtype": dtype,
        "weights_bytes": weights.stat().st_size,
        "evaluations": [[entry["step"], round(entry["loss"], 4)] for entry in state.history],
    }
