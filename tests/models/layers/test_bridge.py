"""The first states against their formula, and what begins without any."""

import numpy as np
import pytest

from regard.models.layers.bridge import Bridge
from tests.models.tensors import fill
from tests.tolerances import assert_close

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
    return fill(layer, RANDOM)


def expected(layer, finals):
    """For each layer the tanh of its share of the product, h and c in turn."""
    wholes = []
    for dense, final in zip(layer.dense, finals, strict=True):
        kernel, bias = (np.asarray(weight, "float64") for weight in dense.weights)
        wholes.append(np.tanh(final.astype("float64") @ kernel + bias))
    return [[whole[:, 5 * i : 5 * i + 5] for whole in wholes] for i in range(2)]


@pytest.mark.parametrize("states", [1, 2])
def test_equals_the_formula_whatever_the_encoder_has(states):
    layer, source_memory = bridge(), memory(states)
    finals = source_memory["final_states"] if states == 2 else source_memory["final_states"] * 2
    assert_close(layer(source_memory), expected(layer, finals))


def test_more_states_than_the_cell_has_are_left():
    layer, source_memory = bridge(state_names=("h",)), memory()
    theirs = expected(layer, source_memory["final_states"][:1])
    assert_close(layer(source_memory), theirs)


def test_a_memory_without_states_is_summed_up_by_the_mean_of_what_is_real():
    layer, source_memory = bridge(final_depth=0), memory(0)
    mean = np.stack([source_memory["values"][0].mean(0), source_memory["values"][1, 0]])
    assert_close(layer.summary(source_memory)[0], mean)
    assert_close(layer(source_memory), expected(layer, [mean, mean]))


def test_zeros_need_no_weights():
    layer = bridge(zeros=True)
    assert layer.weights == []
    np.testing.assert_array_equal(layer(memory()), np.zeros((2, 2, 2, 5)))
