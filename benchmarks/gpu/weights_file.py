"""The file of a model's weights that a run brings back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

MAX_BYTES = 16_000_000
_HEADER_BYTES = 512  # at most, for each array of an npz file


def write(path: Path, weights: Sequence[np.ndarray], max_bytes: int = MAX_BYTES) -> str:
    """Write the weights of a model in float32, or in float16 if that is too large.

    Returns:
        The name of their format.

    Raises:
        ValueError: they need more than ``max_bytes`` in float16, too.
    """
    count = sum(weight.size for weight in weights)
    for dtype in ("float32", "float16"):
        size = count * np.dtype(dtype).itemsize + _HEADER_BYTES * len(weights)
        if size <= max_bytes:
            arrays = {f"weight/{i}": weight.astype(dtype) for i, weight in enumerate(weights)}
            with open(path, "wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
            return dtype
    raise ValueError(f"{count:,} weights need more than {max_bytes:,} bytes.")


def read(path: Path) -> list[np.ndarray]:
    """Return the weights that ``write`` has written, in float32."""
    with np.load(path, allow_pickle=False) as file:
        return [file[f"weight/{number}"].astype("float32") for number in range(len(file.files))]
