"""From a trained model to the SavedModel that TensorFlow Serving runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
import tensorflow_text as text

from components.files import replace_dir
from models.tasks.base import Task


def read_tokenizers(folder: str | Path, features: tuple[str, ...]) -> dict[str, Any]:
    """The tokenizers that the Transform graph has, as ``tensorflow_text`` objects."""
    return {
        feature: text.SentencepieceTokenizer(
            model=tf.io.gfile.GFile(f"{folder}/{feature}.model", "rb").read(),
            out_type=tf.int32,
            # Without names of their own the two would share one resource once saved and loaded.
            name=f"{feature}_tokenizer",
        )
        for feature in features
    }


def export(
    model: keras.Model,
    task: Task,
    config: Mapping[str, Any],
    tokenizers: Mapping[str, Any],
    folder: str | Path,
) -> None:
    """Writes the SavedModel with the task's signatures.

    The exported model computes in float32 whatever it was trained in, so that its answers do
    not depend on the machine that serves it.

    Args:
        model: the trained model.
        task: says what is served.
        config: the YAML's sections ``model``, ``training`` and ``search``.
        tokenizers: one a text feature.
        folder: where to; whole or not there at all.
    """
    pieces = {name: int(t.vocab_size().numpy()) for name, t in tokenizers.items()}
    served = task.build(config["model"], {**config["training"], "precision": "float32"}, pieces)
    served.set_weights(model.get_weights())
    module, signatures = task.served(served, tokenizers, config["search"])
    temporary = Path(f"{folder}.tmp")
    tf.saved_model.save(module, str(temporary), signatures=signatures)
    replace_dir(temporary, Path(folder))
