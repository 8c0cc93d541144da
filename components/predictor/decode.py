"""Asks an exported model for rows, in batches of about equal length."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from serving import saved_model
from serving.saved_model import Answer, SavedModelError


@dataclasses.dataclass(frozen=True)
class Decoded:
    """The answers in the order of the rows, the model's contract, and how long they took."""

    answers: list[Answer]
    contract: Mapping[str, Any]
    seconds: float
    load_seconds: float

    @property
    def sentences_per_second(self) -> float:
        """The speed of decoding; loading the model is not counted."""
        return len(self.answers) / self.seconds if self.seconds else 0.0


def decode(
    model: Path,
    rows: Sequence[Mapping[str, Any]],
    batch_size: int,
    progress: Callable[[int, float], None] = lambda done, seconds: None,
) -> Decoded:
    """Loads a SavedModel and asks the signature that tells most for every row.

    The longest rows come first: the largest batch shows at once whether the memory suffices, and
    the time left is never guessed too short. The order of the result is that of ``rows``. An
    empty text is decoded like any other.

    Args:
        model: the folder with ``saved_model.pb``.
        rows: the inputs of each, by name.
        batch_size: rows a batch.
        progress: called after each batch with the rows done and the seconds spent.

    Raises:
        SavedModelError: the signature or one of its outputs is missing, or the model takes
            something that the rows do not have.
    """
    started = time.monotonic()
    loaded = saved_model.load(model)
    signature = loaded.contract["detail"]
    loaded.signature(signature)
    load_seconds = time.monotonic() - started
    for entry in loaded.contract["inputs"]:
        if rows and entry["name"] not in rows[0]:
            given = ", ".join(rows[0])
            raise SavedModelError(f"it takes {entry['name']}, and the rows have {given}")
    lengths = [_length(row) for row in rows]
    order = sorted(range(len(rows)), key=lambda index: (-lengths[index], index))
    answers: dict[int, Answer] = {}
    seconds = 0.0
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        began = time.monotonic()
        batch = loaded.ask(signature, [rows[index] for index in chosen])
        seconds += time.monotonic() - began
        answers.update(zip(chosen, batch, strict=True))
        progress(len(answers), seconds)
    return Decoded(
        [answers[index] for index in range(len(rows))], loaded.contract, seconds, load_seconds
    )


def device() -> str:
    """``GPU`` where TensorFlow would decode on one, else ``CPU``."""
    import tensorflow as tf

    return "GPU" if tf.config.list_physical_devices("GPU") else "CPU"


def _length(row: Mapping[str, Any]) -> int:
    """About how much work a row is: its characters and points; images are all the same size."""
    return sum(len(value) for value in row.values() if not isinstance(value, bytes))
