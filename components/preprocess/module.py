"""What runs inside the Transform graph: the task's preprocessing, with trained tokenizers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_text as text
import tensorflow_transform as tft

from models import tasks

# The keys of custom_config: what the pipeline sets, and what the executor adds.
TASK = "task"
SETTINGS = "settings"
TOKENIZER = "tokenizer"


def preprocessing_fn(inputs: Mapping[str, Any], custom_config: Mapping[str, Any]) -> dict[str, Any]:
    """The task's transformed features of a batch of raw ones; TFX Transform calls it."""
    folder = custom_config[TOKENIZER]
    tokenizers = load_tokenizers(folder) if folder else {}
    task = tasks.get(custom_config[TASK])
    return task.preprocess(inputs, tokenizers, custom_config[SETTINGS])


def load_tokenizers(folder: str) -> dict[str, text.SentencepieceTokenizer]:
    """The tokenizers of a Tokenizer artifact by feature, tracked for the saved graph.

    They add no BOS and no EOS: where those go is the model's affair.
    """
    with tf.io.gfile.GFile(os.path.join(folder, "tokenizer.json")) as file:
        described = json.load(file)["features"]
    return {
        feature: _tokenizer(feature, os.path.join(folder, entry["file"]))
        for feature, entry in described.items()
    }


def _tokenizer(feature: str, path: str) -> text.SentencepieceTokenizer:
    with tf.io.gfile.GFile(path, "rb") as file:
        proto = file.read()
    name = f"{feature}_tokenizer"
    # Without a name of its own a second tokenizer silently becomes the first one once the graph
    # has been saved and loaded.
    return tft.make_and_track_object(
        lambda: text.SentencepieceTokenizer(proto, out_type=tf.int32, name=name), name=name
    )
