"""The first states against their formula, and what begins without any."""

import keras
import numpy as np
import pytest

from regard.models.layers.bridge import Bridge

RANDOM = np.random.default_rng(5)
MASK = np.array([[True, True, True], [True, False, False]])


def memory(states=2):
    values = RANDOM.normal(size=(2, 3, 4)).astype("float32")
    finals = [RANDOM.normal(size=(2, 6)).astype("float32") for _ in range(states)]
    return {"values": values, "mask": MASK, **({"final_states": finals} if states else {})}


def bridge(**changed):
    settings = {"state_names": "hc", "units": 5, "layers": 2, "depth": 4, "final_depth": 6}
    layer = Bridge(**{**settings, **changed})
    layer.build()
    for weight in layer.weights:  # biases too
        weight.assign(RANDOM.normal(size=weight.shape))
    return layer


def expected(layer, finals):
    """For each layer the tanh of its share of the product, h and c in turn."""
    wholes = []
    for dense, final in zip(layer.dense, finals, strict=True):
        kernel, bias = (np.asarray(weight, "float64") for weight in dense.weights)
        wholes.append(np.tanh(final.astype("float64") @ kernel + bias))
    return [[whole[:, 5 * i : 5 * i + 5] for whole in wholes] for i in range(2)]


@pytest.mark.parametrize("states", [1, 2])
def test_equals_the_formula_whatever_the_encoder_has(states):
    layer, observed = bridge(), memory(states)
    finals = observed["final_states"] if states == 2 else observed["final_states"] * 2
    for ours, theirs in zip(layer(observed), expected(layer, finals), strict=True):
        assert len(ours) == 2
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


def test_more_states_than_the_cell_has_are_left():
    layer, observed = bridge(state_names=("h",)), memory()
    ours = layer(observed)
    theirs = expected(layer, observed["final_states"][:1])
    assert [len(states) for states in ours] == [1, 1]
    np.testing.assert_allclose(ours[1][0], theirs[1][0], atol=1e-6)


def test_a_memory_without_states_is_summed_up_by_the_mean_of_what_is_real():
    layer, observed = bridge(final_depth=0), memory(0)
    mean = np.stack([observed["values"][0].mean(0), observed["values"][1, 0]])
    np.testing.assert_allclose(layer.summary(observed)[0], mean, atol=1e-6)
    for ours, theirs in zip(layer(observed), expected(layer, [mean, mean]), strict=True):
        np.testing.assert_allclose(ours[0], theirs[0], atol=1e-6)
        np.testing.assert_allclose(ours[1], theirs[1], atol=1e-6)


def test_zeros_need_no_weights():
    layer = bridge(zeros=True)
    assert layer.weights == []
    states = layer(memory())
    assert [[tuple(one.shape) for one in layer] for layer in states] == [[(2, 5)] * 2] * 2
    assert not np.any(keras.tree.flatten(keras.tree.map_structure(np.asarray, states)))


def test_config_round_trip():
    layer = bridge(zeros=True, name="bridge")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert again.get_config() == layer.get_config()
