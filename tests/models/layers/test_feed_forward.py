import math

import numpy as np
import pytest

from regard.models.layers.feed_forward import ACTIVATIONS, FeedForward
from tests.models.tensors import fill, weights_by_name
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(8)


def created(activation, **settings):
    layer = FeedForward(5, activation, **settings)
    layer.build((None, None, 4))
    return fill(layer, RANDOM)


def reference(layer, inputs):
    weights = weights_by_name(layer)
    hidden = inputs @ weights["expand/kernel"] + weights.get("expand/bias", 0)
    if layer.activation == "swiglu":
        gate, value = np.split(hidden, 2, -1)
        hidden = gate / (1 + np.exp(-gate)) * value
    elif layer.activation == "gelu":
        hidden = hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) / 2
    elif layer.activation == "silu":
        hidden = hidden / (1 + np.exp(-hidden))
    else:
        hidden = np.maximum(hidden, 0)
    return hidden @ weights["contract/kernel"] + weights.get("contract/bias", 0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_equals_the_formula(activation):
    inputs = RANDOM.normal(size=(2, 3, 4)).astype("float32")
    layer = created(activation)
    assert_close(layer(inputs), reference(layer, inputs), roundings=1000)


def test_swiglu_has_no_biases_and_a_third_matrix():
    assert created("swiglu").count_params() == 3 * 4 * 5
    assert created("relu").count_params() == 2 * 4 * 5 + 4 + 5
