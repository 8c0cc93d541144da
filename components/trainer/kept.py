"""What an exported model keeps for a later training that starts from it.

The weights are in the SavedModel anyway. Beside it is one file with their names, the tokenizers
and the section ``model``, and, if it is asked for, the state of the optimizer, which is twice as
large as the weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from components.files import atomic_path
from components.trainer.optimizer import moments_of
from serving.saved_model import TRAINING

_WEIGHT = "weights/{}/.ATTRIBUTES/VARIABLE_VALUE"


@dataclass(frozen=True)
class Kept:
    """A model as a later training sees it.

    Attributes:
        task: its task's name.
        model: the section ``model`` of its YAML.
        names: of the weights, in order.
        weights: their values.
        tokenizers: the serialized SentencePiece model of each text feature.
        updates: how many updates of the weights its training made.
        moments: Adam's at its end; empty where they were not kept.
    """

    task: str
    model: dict[str, Any]
    names: list[str]
    weights: list[np.ndarray]
    tokenizers: dict[str, bytes]
    updates: int = 0
    moments: list[np.ndarray] = field(default_factory=list)


def keep(
    folder: Path,
    model: keras.Model,
    config: Mapping[str, Any],
    tokenizers: Mapping[str, bytes],
) -> None:
    """Writes the file into the folder of a SavedModel.

    Args:
        folder: the SavedModel's.
        model: the trained one, with its optimizer.
        config: ``task`` and the YAML's sections ``model`` and ``training``.
        tokenizers: the serialized SentencePiece models by text feature.
    """
    about = {
        "task": config["task"],
        "model": config["model"],
        "weights": [weight.path for weight in model.weights],
    }
    arrays = {f"tokenizer/{name}": np.frombuffer(one, np.uint8) for name, one in tokenizers.items()}
    start = config["training"]["warm_start"]
    if start and start["optimizer"]:
        about["updates"] = int(model.optimizer.iterations)
        found = moments_of(model.optimizer)
        arrays |= {f"moment/{i}": np.asarray(moment) for i, moment in enumerate(found)}
    with atomic_path(folder / TRAINING) as temporary, open(temporary, "wb") as file:
        np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)


def read(folder: Path) -> Kept | None:
    """What the SavedModel in a folder gives a later training; None where nothing was kept.

    Raises:
        OSError, ValueError, KeyError, zipfile.BadZipFile, tf.errors.OpError: a file is not what
            it should be.
    """
    path = folder / TRAINING
    if not path.is_file():
        return None
    reader = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
    with np.load(path) as file:
        about = json.loads(str(file["about"]))
        tokenizers = {
            name.removeprefix("tokenizer/"): file[name].tobytes()
            for name in file.files
            if name.startswith("tokenizer/")
        }
        count = sum(name.startswith("moment/") for name in file.files)
        moments = [file[f"moment/{i}"] for i in range(count)]
    return Kept(
        task=about["task"],
        model=about["model"],
        names=about["weights"],
        weights=[reader.get_tensor(_WEIGHT.format(i)) for i in range(len(about["weights"]))],
        tokenizers=tokenizers,
        updates=about.get("updates", 0),
        moments=moments,
    )
