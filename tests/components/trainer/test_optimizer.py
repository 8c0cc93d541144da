"""The optimizer: its settings, what decays, and batches that make one step."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from components.trainer.optimizer import compile_model
from tests.components.trainer.tiny import Tiny, data, settings


def make(**changes):
    training = settings(**{"clip_norm": None, **changes})
    keras.utils.set_random_seed(3)
    model = Tiny().build({"dropout": 0.0}, training, {})
    compile_model(model, training)
    return model


def test_its_settings():
    model = make(beta_1=0.8, beta_2=0.9, epsilon=1e-4, learning_rate=0.02, clip_norm=0.5)
    config = model.optimizer.get_config()
    assert (config["beta_1"], config["beta_2"], config["epsilon"]) == (0.8, 0.9, 1e-4)
    assert config["global_clipnorm"] == 0.5
    assert float(model.optimizer.learning_rate) == pytest.approx(0.02)
    assert isinstance(model.optimizer, keras.optimizers.Adam)
    assert not isinstance(model.optimizer, keras.optimizers.AdamW)


def test_weight_decay_spares_the_bias():
    """Of AdamW only the decay is left where there is no gradient."""
    model = make(weight_decay=0.5, learning_rate=0.1)
    assert isinstance(model.optimizer, keras.optimizers.AdamW)
    model.dense.bias.assign(np.ones(12))
    before = model.get_weights()
    nothing = [np.zeros(w.shape, "float32") for w in model.trainable_variables]
    model.optimizer.apply(nothing, model.trainable_variables)
    for weight, old in zip(model.weights, before, strict=True):
        left = 1.0 if weight is model.dense.bias else 1 - 0.1 * 0.5
        np.testing.assert_allclose(np.array(weight), left * old, rtol=1e-5)


def test_batches_accumulate_to_the_mean_of_their_gradients():
    """Three batches of one step do what their mean gradient does, embeddings included."""
    batches = list(data()[0].epoch(0).take(3))
    apart, reference = make(accumulate=3), make()
    first = apart.get_weights()
    for number, batch in enumerate(batches):
        for weight, old in zip(apart.get_weights(), first, strict=True):
            np.testing.assert_array_equal(weight, old, f"changed before batch {number}")
        apart.train_step(batch)
    gradients = [gradient(reference, batch) for batch in batches]
    mean = [np.mean(parts, axis=0) for parts in zip(*gradients, strict=True)]
    reference.optimizer.apply(mean, reference.trainable_variables)
    assert int(apart.optimizer.iterations) == 1
    for ours, theirs in zip(apart.get_weights(), reference.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def gradient(model, batch):
    """The gradient by every weight, dense."""
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x=batch, y_pred=model(batch, training=True))
    found = tape.gradient(loss, [w.value for w in model.trainable_variables])
    return [np.array(tf.convert_to_tensor(g)) for g in found]
