"""Decodes sentences with an exported model, in batches of about equal length."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from components.predictions import Answer

SIGNATURE = "align"
OUTPUTS = (
    "translation",
    "score",
    "source_pieces",
    "source_length",
    "target_pieces",
    "target_length",
    "alignment",
)


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
        RuntimeError: if the signature or one of its outputs is missing.
    """
    started = time.monotonic()
    loaded, function = _load(model)
    load_seconds = time.monotonic() - started
    order = sorted(range(len(sources)), key=lambda index: (-len(sources[index]), index))
    answers: dict[int, Answer] = {}
    seconds = 0.0
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        began = time.monotonic()
        batch = _decode_batch(function, [sources[index] for index in chosen])
        seconds += time.monotonic() - began
        answers.update(zip(chosen, batch, strict=True))
        progress(len(answers), seconds)
    del loaded  # the signature's variables live only as long as the loaded model
    return Decoded([answers[index] for index in range(len(sources))], seconds, load_seconds)


def device() -> str:
    """``GPU`` where TensorFlow would decode on one, else ``CPU``."""
    import tensorflow as tf

    return "GPU" if tf.config.list_physical_devices("GPU") else "CPU"


def _load(model: Path) -> tuple[Any, Callable[..., dict[str, Any]]]:
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (registers the tokenizer's operations)

    loaded = tf.saved_model.load(str(model))
    if SIGNATURE not in loaded.signatures:
        there = ", ".join(sorted(loaded.signatures)) or "none"
        raise RuntimeError(f"{model} has no signature {SIGNATURE!r} (it has: {there})")
    function = loaded.signatures[SIGNATURE]
    missing = [name for name in OUTPUTS if name not in function.structured_outputs]
    if missing:
        raise RuntimeError(f"{model}: signature {SIGNATURE!r} has no output {missing[0]!r}")
    return loaded, function


def _decode_batch(function: Callable[..., dict[str, Any]], sources: list[str]) -> list[Answer]:
    import tensorflow as tf

    out = {name: value.numpy() for name, value in function(source=tf.constant(sources)).items()}
    answers = []
    for index in range(len(sources)):
        source_length = int(out["source_length"][index])
        target_length = int(out["target_length"][index])
        answers.append(
            Answer(
                hypothesis=_text(out["translation"][index]),
                score=float(out["score"][index]),
                source_pieces=[_text(p) for p in out["source_pieces"][index][:source_length]],
                target_pieces=[_text(p) for p in out["target_pieces"][index][:target_length]],
                # A copy: a view would keep the padded batch in memory.
                alignment=out["alignment"][index, :target_length, :source_length].copy(),
            )
        )
    return answers


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")
