"""What an exported model keeps for a later training, and how it is read again."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from components.trainer.kept import keep, read
from components.trainer.optimizer import moments_of
from serving.saved_model import TRAINING

TOKENIZERS = {"source": b"\x00one\xff", "target": b""}


@pytest.fixture
def model():
    made = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="dense")])
    made.compile(optimizer="adam", loss="mse")
    made.fit(np.ones((4, 2)), np.ones((4, 3)), verbose=0)
    return made


@pytest.fixture
def put(model, tmp_path):
    """Writes the model as every export does, and what is kept beside it."""

    def put(start):
        module = tf.Module()
        module.weights = [weight.value for weight in model.weights]
        tf.saved_model.save(module, str(tmp_path))
        config = {"task": "translation", "model": {"units": 3}, "training": {"warm_start": start}}
        keep(tmp_path, model, config, TOKENIZERS)
        return read(tmp_path)

    return put


@pytest.mark.parametrize("start", [None, {"optimizer": False}])
def test_weights_names_tokenizers_and_settings(put, model, start):
    found = put(start)
    assert (found.task, found.model) == ("translation", {"units": 3})
    assert found.tokenizers == TOKENIZERS
    assert found.names == [weight.path for weight in model.weights]
    for kept, weight in zip(found.weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(kept, weight)
    assert (found.updates, found.moments) == (0, [])


def test_the_optimizer_is_kept_where_it_is_asked_for(put, model):
    found = put({"optimizer": True})
    assert found.updates == int(model.optimizer.iterations) == 1
    for kept, moment in zip(found.moments, moments_of(model.optimizer), strict=True):
        np.testing.assert_array_equal(kept, np.asarray(moment))
    assert any(moment.any() for moment in found.moments)


def test_a_model_that_kept_nothing(tmp_path):
    assert read(tmp_path) is None


def test_the_weights_are_those_of_the_saved_model(put, tmp_path):
    put(None)
    assert not any("weight" in name for name in np.load(tmp_path / TRAINING).files)
