"""An exported model, loaded and asked: the one place that reads its signatures.

Imports nothing of ours, and TensorFlow only when called, so that the serving check can load it
by its path in an interpreter that sees no package of Regard.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from typing import Any

INPUT = "source"
SIGNATURES = {
    "serving_default": ("translation", "score"),
    "align": (
        "translation",
        "score",
        "source_pieces",
        "source_length",
        "target_pieces",
        "target_length",
        "alignment",
    ),
}


class SavedModelError(Exception):
    """The model is not what it should be: a signature or an output is missing or misshapen."""


class SourceRefused(SavedModelError):
    """A source is longer than the model takes, and it was exported to refuse such."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a model answered to one source.

    Attributes:
        hypothesis: the text.
        score: the natural logarithm of its probability.
        source_pieces: with their end of sentence; empty for ``serving_default``.
        target_pieces: the same.
        alignment: ``[target, source]`` in pieces, float32; None for ``serving_default``.
        source_cut: how many pieces of the source were not read; 0 for ``serving_default``.
    """

    hypothesis: str
    score: float
    source_pieces: list[str] = dataclasses.field(default_factory=list)
    target_pieces: list[str] = dataclasses.field(default_factory=list)
    alignment: Any = None
    source_cut: int = 0


def load(path: str | os.PathLike[str]) -> Any:
    """The loaded SavedModel; TensorFlow's own errors pass."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (registers the tokenizer's operations)

    return tf.saved_model.load(os.fspath(path))


def signature(loaded: Any, name: str) -> Any:
    """A signature of a loaded model, with the outputs that it must have.

    Raises:
        SavedModelError: it is not there, takes something else, or lacks an output.
    """
    if name not in loaded.signatures:
        there = ", ".join(sorted(loaded.signatures)) or "none"
        raise SavedModelError(f"there is no signature {name!r} (there are: {there})")
    function = loaded.signatures[name]
    inputs = function.structured_input_signature[1]
    spec = inputs.get(INPUT)
    if list(inputs) != [INPUT] or spec.dtype.name != "string" or spec.shape.ndims != 1:
        raise SavedModelError(f"{name} does not take {INPUT}: string[batch] alone, but {inputs}")
    missing = [key for key in SIGNATURES[name] if key not in function.structured_outputs]
    if missing:
        raise SavedModelError(f"{name} has no output {', '.join(missing)}")
    return function


def ask(function: Any, sources: Sequence[str]) -> list[Answer]:
    """The answers to one request, in order, without their padding.

    Raises:
        SourceRefused: a source is too long.
        SavedModelError: an output's first dimension is not the batch.
    """
    import tensorflow as tf

    request = tf.constant(list(sources), dtype=tf.string)
    try:
        out = {name: value.numpy() for name, value in function(**{INPUT: request}).items()}
    except tf.errors.InvalidArgumentError as error:
        refused = re.search(r"\[(a source has more than .*? max_source_length)\b", error.message)
        if refused is None:
            raise
        raise SourceRefused(refused[1]) from None
    for name, value in out.items():
        if value.ndim == 0 or value.shape[0] != len(sources):
            raise SavedModelError(
                f"output {name} has shape {value.shape} for a batch of {len(sources)}"
            )
    return [_answer(out, row) for row in range(len(sources))]


def _answer(out: dict[str, Any], row: int) -> Answer:
    hypothesis, score = _text(out["translation"][row]), float(out["score"][row])
    if "alignment" not in out:
        return Answer(hypothesis, score)
    source, target = int(out["source_length"][row]), int(out["target_length"][row])
    return Answer(
        hypothesis,
        score,
        [_text(piece) for piece in out["source_pieces"][row][:source]],
        [_text(piece) for piece in out["target_pieces"][row][:target]],
        # A copy: a view would keep the padded batch in memory.
        out["alignment"][row, :target, :source].copy(),
        int(out["source_cut"][row]) if "source_cut" in out else 0,
    )


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")
