"""From a trained model to the SavedModel that TensorFlow Serving runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text as text

from components.files import replace_dir
from models.tasks.base import Task
from models.trained import TrainedModel
from serving.saved_model import CONTRACT


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
    model: TrainedModel,
    task: Task,
    config: Mapping[str, Any],
    tokenizers: Mapping[str, Any],
    folder: str | Path,
) -> None:
    """Writes the SavedModel with the task's signatures, and its contract beside it.

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
    exported = task.served(served, tokenizers, config)
    temporary = Path(f"{folder}.tmp")
    tf.saved_model.save(exported.module, str(temporary), signatures=exported.signatures)
    contract = temporary / CONTRACT
    contract.parent.mkdir(exist_ok=True)
    text = json.dumps(exported.contract, indent=2, ensure_ascii=False) + "\n"
    contract.write_text(text, encoding="utf-8")
    replace_dir(temporary, Path(folder))
