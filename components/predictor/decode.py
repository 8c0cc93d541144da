"""Decodes sentences with an exported model, in batches of about equal length."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from serving import saved_model
from serving.saved_model import Answer

SIGNATURE = "align"


@dataclasses.dataclass(frozen=True)
class Decoded:
    """The answers in the order of the sources, and how long they took."""

    answers: list[Answer]
    seconds: float
    load_seconds: float

    @property
    def sentences_per_second(self) -> float:
        """The speed of decoding; loading the model is not counted."""
        return len(self.answers) / self.seconds if self.seconds else 0.0


def decode(
    model: Path,
    sources: Sequence[str],
    batch_size: int,
    progress: Callable[[int, float], None] = lambda done, seconds: None,
) -> Decoded:
    """Loads a SavedModel and asks its ``align`` signature for every source.

    The longest sentences come first: the largest batch shows at once whether the memory
    suffices, and the time left is never guessed too short. The order of the result is that of
    ``sources``. An empty source is decoded like any other.

    Args:
        model: the folder with ``saved_model.pb``.
        sources: sentences.
        batch_size: sentences a batch.
        progress: called after each batch with the sentences done and the seconds spent.

    Raises:
        SavedModelError: the signature or one of its outputs is missing.
    """
    started = time.monotonic()
    loaded = saved_model.load(model)
    function = saved_model.signature(loaded, SIGNATURE)
    load_seconds = time.monotonic() - started
    order = sorted(range(len(sources)), key=lambda index: (-len(sources[index]), index))
    answers: dict[int, Answer] = {}
    seconds = 0.0
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        began = time.monotonic()
        batch = saved_model.ask(function, [sources[index] for index in chosen])
        seconds += time.monotonic() - began
        answers.update(zip(chosen, batch, strict=True))
        progress(len(answers), seconds)
    del loaded  # the signature's variables live only as long as the loaded model
    return Decoded([answers[index] for index in range(len(sources))], seconds, load_seconds)


def device() -> str:
    """``GPU`` where TensorFlow would decode on one, else ``CPU``."""
    import tensorflow as tf

    return "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
