"""A task whose model is traced in a second, for tests of the training around it."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from components.trainer.checkpoint import Checkpoints, Position
from components.trainer.data import Batches
from components.trainer.fitting import fit
from components.trainer.optimizer import compile_model
from models.losses import token_losses
from models.tasks.translation.task import Translation
from models.trained import TrainedModel
from pipeline.config.training import Training
from tests.components.trainer.records import SPEC, write

PIECES = 12
# What the compiled steps of a model depend on.
COMPILED = (
    "learning_rate",
    "schedule",
    "max_steps",
    "accumulate",
    "weight_decay",
    "clip_norm",
    "precision",
    "jit_compile",
    "seed",
)
_FOLDER = tempfile.TemporaryDirectory()
_MADE: dict[str, tuple[keras.Model, list[np.ndarray]]] = {}


@keras.saving.register_keras_serializable("tests")
class Bag(TrainedModel):
    """Guesses each target piece from the one before it and from the mean of the source."""

    def __init__(self, dropout: float = 0.2, **kwargs):
        super().__init__(**kwargs)
        policy = kwargs.get("dtype")
        self.embedding = keras.layers.Embedding(PIECES, 8, dtype=policy)
        self.dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.dense = keras.layers.Dense(PIECES, dtype=policy)

    def build(self, shape=None):
        self.embedding.build((None, None))
        self.dense.build((None, None, 8))
        self.built = True

    def call(self, inputs, training=False):
        source, target = inputs["source"], inputs["target"]
        before = ops.pad(target[:, :-1], ((0, 0), (1, 0)))
        real = ops.cast(ops.not_equal(source, 0), self.compute_dtype)[..., None]
        mean = ops.sum(self.embedding(source) * real, axis=1, keepdims=True)
        mean = mean / ops.maximum(ops.sum(real, axis=1, keepdims=True), 1.0)
        hidden = self.dropout(self.embedding(before) + mean, training=training)
        return {"logits": self.dense(hidden)}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        real = ops.cast(ops.not_equal(x["target"], 0), "float32")
        losses = token_losses(y_pred["logits"], x["target"]).plain
        loss = ops.sum(losses * real) / ops.maximum(ops.sum(real), 1.0)
        self.plain_loss.update_state(loss, ops.sum(real))
        return loss

    def measures(self, results):
        found = super().measures(results)
        return {**found, "perplexity": float(np.exp(found["loss"])), "accuracy": 0.5}


class Tiny(Translation):
    """Translation's data with the model above."""

    def build(self, model, training, pieces):
        bag = Bag(model.get("dropout", 0.2), dtype=keras.DTypePolicy(training["precision"]))
        bag.build()
        return bag


def settings(**changes) -> dict:
    """The section ``training`` with what a test changes."""
    plain = {
        "batch_tokens": 160,
        "max_length": 20,
        "max_epochs": 3,
        "learning_rate": 0.01,
        "early_stop": None,
        "seed": 5,
        "precision": "float32",
    }
    every = {name: changes.pop(name) for name in ("checkpoint_seconds",) if name in changes}
    # A checkpoint after every batch, 0 seconds, is for tests only.
    return {**Training.model_validate({**plain, **changes}).model_dump(mode="json"), **every}


@functools.cache
def data() -> tuple[Batches, Batches]:
    """The batches of a train and an eval split."""
    folder = Path(_FOLDER.name)
    random = np.random.default_rng(0)
    pairs = [(list(i), list(i)) for n in range(160) for i in [random.integers(4, 12, 2 + n % 9)]]
    patterns = write(folder / "train.gz", pairs[:120]), write(folder / "eval.gz", pairs[120:])
    train, held_out = (Batches([p], SPEC, Tiny(), 160, 20, seed=5) for p in patterns)
    return train, held_out


def make(training: dict) -> keras.Model:
    """A model as new, with its optimizer; tracing takes seconds, so like ones share it."""
    key = json.dumps({name: training[name] for name in COMPILED})
    if key not in _MADE:
        keras.utils.set_random_seed(training["seed"])
        model = Tiny().build({}, training, {})
        compile_model(model, training)
        _MADE[key] = model, variables(model)
    model, state = _MADE[key]
    for variable, value in zip(_variables(model), state, strict=True):
        variable.assign(value)
    return model


def train(
    folder: Path, checkpoints: type = Checkpoints, decode=None, **changes
) -> tuple[keras.Model, Position]:
    """Trains a new model, or goes on with what the folder holds."""
    training = settings(**changes)
    model = make(training)
    store = checkpoints(folder / "ck")
    return model, fit(model, *data(), training, store, str(folder / "log"), decode)


def stored(path: Path) -> list[np.ndarray]:
    """The arrays that a checkpoint holds: all variables in ``last.npz``, else the weights."""
    with np.load(path) as file:
        return [file[f"v{i}"] for i in range(len(file.files) - 1)]


def variables(model: keras.Model) -> list[np.ndarray]:
    """All that a checkpoint has to hold of a model."""
    return [np.array(v) for v in _variables(model)]


def _variables(model: keras.Model) -> list[Any]:
    return [*model.variables, *model.optimizer.variables]
