"""From a trained model to the SavedModel that TensorFlow Serving runs."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text as text

from components.files import replace_dir
from models.tasks.base import Task
from models.tasks.served import Served
from models.trained import TrainedModel
from serving.saved_model import CONTRACT, IN_MEMORY, Answer, answers, arrays, device


def read_tokenizers(folder: str | Path, features: tuple[str, ...]) -> dict[str, Any]:
    """The tokenizers that the Transform graph has, as ``tensorflow_text`` objects."""
    return {
        feature: text.SentencepieceTokenizer(
            model=serialized,
            out_type=tf.int32,
            # Without names of their own the two would share one resource once saved and loaded.
            name=f"{feature}_tokenizer",
        )
        for feature, serialized in read_pieces(folder, features).items()
    }


def read_pieces(folder: str | Path, features: tuple[str, ...]) -> dict[str, bytes]:
    """The same as serialized SentencePiece models."""
    return {
        feature: tf.io.gfile.GFile(f"{folder}/{feature}.model", "rb").read() for feature in features
    }


def export(
    model: TrainedModel,
    task: Task,
    config: Mapping[str, Any],
    tokenizers: Mapping[str, Any],
    folder: str | Path,
    rows: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Writes the SavedModel with the task's signatures, and its contract beside it.

    Beside it are also some rows with the answers that the model gives here, in memory, which
    whoever loads it can hold its own against.

    The exported model computes in float32 whatever it was trained in, so that its answers do
    not depend on the machine that serves it.

    Args:
        model: the trained model.
        task: says what is served.
        config: the YAML's sections ``model``, ``training`` and ``search``.
        tokenizers: one a text feature.
        folder: where to; whole or not there at all.
        rows: inputs of the model, by name.
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
    kept = json.dumps(_in_memory(exported, rows), ensure_ascii=False) + "\n"
    (temporary / IN_MEMORY).write_text(kept, encoding="utf-8")
    replace_dir(temporary, Path(folder))


def _in_memory(exported: Served, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the answers of the signature that tells most, as plain data."""
    if not rows:
        return []
    texts = [entry["name"] for entry in exported.contract["inputs"] if entry["kind"] == "text"]
    rows = [{**row, **{key: _text(row[key]) for key in texts}} for row in rows]
    try:
        found = _asked(exported, rows)
    except tf.errors.InvalidArgumentError:
        # A model may refuse what is too long or too short; the training does not end with that.
        rows = [row for row in rows if not _refuses(exported, row)]
        found = _asked(exported, rows) if rows else []
    return [
        {
            "inputs": {key: _plain(value) for key, value in row.items()},
            "answer": {key: _plain(value) for key, value in answer.outputs.items()},
            "device": device(),
        }
        for row, answer in zip(rows, found, strict=True)
    ]


def _asked(exported: Served, rows: Sequence[Mapping[str, Any]]) -> list[Answer]:
    contract, name = exported.contract, exported.contract["detail"]
    tensors = {
        key: tf.constant(value, tf.string if value.dtype == object else None)
        for key, value in arrays(contract["signatures"][name]["inputs"], rows).items()
    }
    found = {key: value.numpy() for key, value in exported.signatures[name](**tensors).items()}
    return answers(contract, name, found, len(rows))


def _refuses(exported: Served, row: Mapping[str, Any]) -> bool:
    try:
        _asked(exported, [row])
    except tf.errors.InvalidArgumentError:
        return True
    return False


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", errors="replace")


def _plain(value: Any) -> Any:
    """A value for JSON: images in base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value.tolist() if hasattr(value, "tolist") else value
