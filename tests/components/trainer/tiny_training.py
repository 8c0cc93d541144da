"""A task whose model is traced in a second, for tests of the training around it."""

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from regard.components.trainer.batches import Batches
from regard.components.trainer.checkpoint import Checkpoints, TrainState
from regard.components.trainer.fine_tuning import set_trainable
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.training_loop import fit
from regard.models.losses import token_losses
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.text_to_text.network import TextNetwork
from regard.models.tasks.text_to_text.settings import TextToTextModelConfig
from regard.models.tasks.translation.description import DESCRIPTION
from regard.models.trainable_model import TrainableModel
from tests.components.trainer.pairs import write_pairs

VOCABULARY_SIZE = 12
# The settings that the compiled functions of a model depend on; `max_steps` only with a cosine
# schedule, which no test here uses.
COMPILED_SETTINGS = (
    "learning_rate",
    "schedule",
    "gradient_accumulation_steps",
    "weight_decay",
    "clip_norm",
    "precision",
    "jit_compile",
    "seed",
    "freeze",
    "lora",
)
_FOLDER = tempfile.TemporaryDirectory()
_MODELS: dict[str, tuple[keras.Model, list[np.ndarray]]] = {}


@keras.saving.register_keras_serializable("tests")
class BagModel(TrainableModel):
    """Predicts each target token from the previous one and from the mean of the source."""

    def __init__(self, dropout: float = 0.2, **kwargs):
        super().__init__(**kwargs)
        policy = kwargs.get("dtype")
        self.embedding = keras.layers.Embedding(VOCABULARY_SIZE, 8, dtype=policy)
        self.dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.dense = keras.layers.Dense(VOCABULARY_SIZE, dtype=policy)

    def build(self, shape=None):
        self.embedding.build((None, None))
        self.dense.build((None, None, 8))
        self.built = True

    def call(self, inputs, training=False):
        source, target = inputs["source"], inputs["target"]
        previous = ops.pad(target[:, :-1], ((0, 0), (1, 0)))
        mask = ops.cast(ops.not_equal(source, 0), self.compute_dtype)[..., None]
        mean = ops.sum(self.embedding(source) * mask, axis=1, keepdims=True)
        mean = mean / ops.maximum(ops.sum(mask, axis=1, keepdims=True), 1.0)
        hidden = self.dropout(self.embedding(previous) + mean, training=training)
        return {"logits": self.dense(hidden)}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        mask = ops.cast(ops.not_equal(x["target"], 0), "float32")
        losses = token_losses(y_pred["logits"], x["target"]).plain
        loss = ops.sum(losses * mask) / ops.maximum(ops.sum(mask), 1.0)
        self.loss_mean.update_state(loss, ops.sum(mask))
        return loss

    def evaluation_metrics(self, results):
        values = super().evaluation_metrics(results)
        return {**values, "perplexity": float(np.exp(values["loss"])), "accuracy": 0.5}


class TinyTask(TextNetwork):
    """The data of translation with the model above."""

    def __init__(self):
        super().__init__(DESCRIPTION)

    def build(self, model, training, sizes):
        bag = BagModel(model.dropout, dtype=keras.DTypePolicy(training.precision))
        bag.build()
        return bag

    def vocab_weights(self, model):
        return [(model.embedding.embeddings, 0, "source")]


def training_config(checkpoint_seconds: float = 60, **changes: Any) -> TrainingConfig:
    """The section ``training`` with the changes of a test.

    Args:
        checkpoint_seconds: 0 saves a checkpoint after every batch, which users cannot configure.
        **changes: other settings.
    """
    settings = {
        "batch_tokens": 160,
        "max_length": 20,
        "max_epochs": 3,
        "learning_rate": 0.01,
        "early_stopping": None,
        "seed": 5,
        "precision": "float32",
    }
    config = TrainingConfig.model_validate({**settings, **changes})
    return config.model_copy(update={"checkpoint_seconds": checkpoint_seconds})


@functools.cache
def batches() -> tuple[Batches, Batches]:
    """The batches of a train and an eval split."""
    folder = Path(_FOLDER.name)
    random = np.random.default_rng(0)
    pairs = [(list(i), list(i)) for n in range(160) for i in [random.integers(4, 12, 2 + n % 9)]]
    paths = (
        write_pairs(folder / "train.arrow", pairs[:120]),
        write_pairs(folder / "eval.arrow", pairs[120:]),
    )
    train, evaluation = (Batches([p], TinyTask(), 160, 20, seed=5) for p in paths)
    return train, evaluation


def new_model(training: TrainingConfig) -> keras.Model:
    """A compiled model in its initial state; equal ones are shared, since tracing takes seconds."""
    settings = training.model_dump(mode="json")
    key = json.dumps({name: settings[name] for name in COMPILED_SETTINGS})
    if key not in _MODELS:
        keras.utils.set_random_seed(training.seed)
        model = TinyTask().build(TextToTextModelConfig(), training, {})
        set_trainable(model, TinyTask(), training)
        compile_model(model, training)
        _MODELS[key] = model, [np.array(v) for v in _variables(model)]
    model, values = _MODELS[key]
    for variable, value in zip(_variables(model), values, strict=True):
        variable.assign(value)
    return model


def train(
    folder: Path, checkpoints: type = Checkpoints, compute_metrics=None, **changes
) -> tuple[keras.Model, TrainState]:
    """Train a new model, or resume from the checkpoints in the folder."""
    training = training_config(**changes)
    model = new_model(training)
    files = checkpoints(folder / "ck")
    state = fit(model, *batches(), training, files, str(folder / "log"), compute_metrics)
    return model, state


def checkpoint_arrays(path: Path) -> list[np.ndarray]:
    """The arrays of a checkpoint: all variables in ``last.npz``, else the weights."""
    with np.load(path) as file:
        return [file[f"v{i}"] for i in range(len(file.files) - 1)]


def assert_equal_arrays(actual, expected) -> None:
    """Assert that two sequences of arrays are equal, bit for bit."""
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def clear_models() -> None:
    """Forget the shared models."""
    _MODELS.clear()


def _variables(model: keras.Model) -> list[Any]:
    return [*model.variables, *model.optimizer.variables]
