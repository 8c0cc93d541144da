import math

import keras
import numpy as np
import pytest

from regard.models.layers.transformer import ACTIVATIONS, FeedForward

RANDOM = np.random.default_rng(8)


def created(activation, **settings):
    layer = FeedForward(5, activation, **settings)
    layer.build((None, None, 4))
    for weight in layer.weights:
        weight.assign(RANDOM.normal(size=weight.shape))
    return layer


def reference(layer, inputs):
    weights = {w.path.split("/", 1)[1]: np.asarray(w, "float64") for w in layer.weights}
    hidden = inputs @ weights["expand/kernel"] + weights.get("expand/bias", 0)
    if layer.activation == "swiglu":
        gate, value = np.split(hidden, 2, -1)
        hidden = gate / (1 + np.exp(-gate)) * value
    elif layer.activation == "gelu":
        hidden = hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) / 2
    else:
        hidden = np.maximum(hidden, 0)
    return hidden @ weights["contract/kernel"] + weights.get("contract/bias", 0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_equals_the_formula(activation):
    inputs = RANDOM.normal(size=(2, 3, 4)).astype("float32")
    layer = created(activation)
    np.testing.assert_allclose(layer(inputs), reference(layer, inputs), rtol=1e-4, atol=1e-4)


def test_swiglu_has_no_biases_and_a_third_matrix():
    assert created("swiglu").count_params() == 3 * 4 * 5
    assert created("relu").count_params() == 2 * 4 * 5 + 4 + 5


def test_dropout_only_in_training():
    inputs = RANDOM.normal(size=(2, 3, 4)).astype("float32")
    layer = created("relu", dropout=0.5)
    still = np.asarray(layer(inputs))
    np.testing.assert_array_equal(still, layer(inputs))
    assert not np.allclose(still, layer(inputs, training=True))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"inner": 4, "activation": "rleu"}, "'rleu'.*relu, gelu, swiglu"),
        ({"inner": 0}, "at least 1, not 0"),
    ],
)
def test_invalid_arguments(settings, message):
    with pytest.raises(ValueError, match=message):
        FeedForward(**settings)


def test_config_round_trip():
    layer = FeedForward(5, "gelu", 0.2, name="network")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert again.get_config() == layer.get_config()
