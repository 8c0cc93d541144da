"""Part ``search``: the speed of greedy and beam search on JAX, and whether outputs are equal.

The model is small and was trained a little on TensorFlow, when the folder was prepared; the outputs
of TensorFlow on the CPU are the reference. With the precision ``highest``, products of float32
matrices are computed in full; ``default`` is what a training decodes with.

So far, this part has run on CPUs only, in its small size.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.gpu import searching
from benchmarks.gpu.folder import MULTI30K, REFERENCE, Settings, make_batches, read_split
from regard.components.trainer.epoch_plan import COARSE_GROWTH
from regard.models.settings.training import TrainingConfig

PRECISIONS = ("highest", "default")


def measure(folder: Path) -> Iterator[dict[str, Any]]:
    """Decode with each search, and yield a row for each precision."""
    settings = Settings.read(folder)
    size = settings.sizes
    with np.load(folder / REFERENCE, allow_pickle=False) as file:
        reference = {name: file[name] for name in file if name.startswith("search/")}
    training = TrainingConfig()
    model = searching.build_model(size.search_model, training, settings.vocabulary_sizes[MULTI30K])
    model.set_weights(searching.read_weights(reference))
    sources = searching.read_sources(folder, size.search_rows)
    # Only a GPU distinguishes the precisions.
    precisions = PRECISIONS if jax.default_backend() == "gpu" else PRECISIONS[:1]
    with tempfile.TemporaryDirectory() as temporary:
        batches = make_batches(
            Path(temporary, "rows.arrow"),
            read_split(folder, MULTI30K, "test"),
            batch_tokens=2048,
            max_length=60,
            seed=0,
            growth=COARSE_GROWTH,
        )
        for name, search in searching.SEARCHES.items():
            expected = searching.trim(reference[f"search/{name}"])
            for precision in precisions:
                with jax.default_matmul_precision(precision):
                    outputs, seconds = searching.decode(
                        model, search, searching.LIMITS, batches, sources, size.search_batch
                    )
                yield {
                    "search": name,
                    "precision": precision,
                    "sentences_per_second": round(len(outputs) / seconds, 1),
                    "equal_outputs": round(searching.share_equal(outputs, expected), 4),
                    "sentences": len(outputs),
                    "batch": size.search_batch,
                }
