"""One process of a run: it computes a part, and writes each row when it is finished."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Left of the limit of part ``multi30k`` when its training stops: to load the average, evaluate it,
# and write the weights.
_SECONDS_AFTER_TRAINING = 30


def run_part(
    name: str, folder: Path, rows: Path, weights: Path, seconds: float, backend: str, model: str
) -> None:
    """Compute a part, and append its rows to a file as lines of JSON.

    Args:
        name: the part.
        folder: the prepared folder.
        rows: the file of the rows.
        weights: the file for the weights of part ``multi30k``.
        seconds: the limit on this process.
        backend: the backend of part ``numerics``, on which Keras computes in this process.
        model: the model of parts ``training`` and ``torch``.
    """
    with open(rows, "a", encoding="utf-8") as file:
        for row in compute(name, folder, weights, seconds, backend, model):
            file.write(json.dumps(row) + "\n")
            file.flush()
        facts = {"tensorflow_imported": "tensorflow" in sys.modules}
        file.write(json.dumps({"facts": facts}) + "\n")


def compute(
    name: str, folder: Path, weights: Path, seconds: float, backend: str, model: str
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a part, and facts about its device; see ``run_part``.

    Raises:
        ValueError: there is no such part.
    """
    # Each part imports its own libraries: JAX or PyTorch.
    if name == "torch":
        from benchmarks.gpu import torch_training

        yield from torch_training.measure(folder, model)
        return
    if name == "numerics":
        yield from compute_numerics(folder, backend)
        return
    from benchmarks.gpu import device

    yield {"facts": device.describe()}
    if name == "training":
        from benchmarks.gpu import training

        yield from training.measure(folder, model)
    elif name == "search":
        from benchmarks.gpu import search_speed

        yield from search_speed.measure(folder)
    elif name == "multi30k":
        from benchmarks.gpu import translation

        minutes = max(seconds - _SECONDS_AFTER_TRAINING, 1.0) / 60
        yield from translation.train(folder, weights, minutes)
    else:
        raise ValueError(f"There is no part {name!r}.")


def compute_numerics(folder: Path, backend: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of part ``numerics``."""
    import keras
    import numpy as np

    from benchmarks.gpu import numerics
    from benchmarks.gpu.folder import REFERENCE, Settings

    if keras.backend.backend() != backend:
        raise ValueError(f"Keras computes on {keras.backend.backend()}, not on {backend}.")
    with np.load(folder / REFERENCE, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file if name.startswith("backends/")}
    yield from numerics.compare(Settings.read(folder).sizes.backend_parts, arrays)
