"""Poolings compared with NumPy, alone and padded."""

import warnings

import keras
import numpy as np
import pytest

from regard.models.layers.pooling import POOLINGS
from regard.models.serialization import spec
from tests.models.layers import reference
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(3)
STATES = RANDOM.normal(size=(3, 5, 4)).astype("float32")
LENGTHS = [5, 2, 0]
MASK = np.arange(5)[None] < np.array(LENGTHS)[:, None]
GUIDE = RANDOM.normal(size=(3, 4)).astype("float32")


def make(name, **options):
    keras.utils.set_random_seed(1)
    pooling = spec("pooling", POOLINGS, {"type": name, **options})
    pooling.build((None, None, 4))
    return pooling


def mean(pooling, states, guide):
    return reference.mean_pooling(states)


def most(pooling, states, guide):
    return reference.max_pooling(states)


def mean_max(pooling, states, guide):
    (average, even), (greatest, best) = (f(pooling, states, guide) for f in (mean, most))
    return np.concatenate([average, greatest]), (even + best) / 2


def gate(pooling, states, guide):
    return reference.gate_pooling(states, *weights_of(pooling.gate))


def self_attention(pooling, states, guide):
    hidden, scores = weights_of(pooling)
    return reference.self_attentive_pooling(states, hidden.T, scores.T)


def top_down(pooling, states, guide):
    return reference.top_down_pooling(states, guide)


def weights_of(layer):
    return [np.asarray(weight, "float64") for weight in layer.weights]


REFERENCES = {
    "mean": (mean, {}),
    "max": (most, {}),
    "mean_max": (mean_max, {}),
    "gate": (gate, {}),
    "self_attention": (self_attention, {"units": 6, "hops": 3}),
    "top_down": (top_down, {"score": "dot"}),
}


@pytest.mark.parametrize("name", POOLINGS)
def test_as_its_formula(name):
    pool, options = REFERENCES[name]
    pooling = make(name, **options)
    vectors, weights = pooling(STATES, MASK, GUIDE)
    assert vectors.shape == (3, pooling.out_depth(4))
    for row, length in enumerate(LENGTHS[:2]):
        states = STATES[row, :length].astype("float64")
        vector, expected = pool(pooling, states, GUIDE[row].astype("float64"))
        assert_close(vectors[row], vector)
        assert_close(weights[row, :length], expected)
        np.testing.assert_array_equal(weights[row, length:], 0.0)
    np.testing.assert_array_equal(vectors[2], 0.0)  # an empty row
    np.testing.assert_array_equal(weights[2], 0.0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_equal_positions_share_their_maxima(scale):
    """Which of two equal words is the maximum would depend on rounding."""
    states = scale * np.asarray([[[3, 1], [1, 2], [3, 0], [-1, 2], [9, 9]]], "float32")
    noise = 1 + 5e-7 * np.random.default_rng(1).standard_normal((4, *states.shape[1:]))
    mask = np.asarray([[True] * 4 + [False]] * 4)
    _, weights = make("max")(states * noise.astype("float32"), mask)
    assert_close(weights, [[0.25, 0.25, 0.25, 0.25, 0]] * 4)


@pytest.mark.parametrize("name", REFERENCES)
def test_a_padded_row_is_as_alone(name):
    pooling = make(name, **REFERENCES[name][1])
    batched, weights = pooling(STATES, MASK, GUIDE)
    alone, alone_weights = pooling(STATES[1:2, :2], MASK[1:2, :2], GUIDE[1:2])
    assert_close(batched[1:2], alone)
    assert_close(weights[1:2, :2], alone_weights)


@pytest.mark.parametrize(
    ("name", "policy"),
    [*((name, "mixed_float16") for name in REFERENCES), ("self_attention", "mixed_bfloat16")],
)
def test_half_precision(name, policy):
    pooling = make(name, dtype=keras.DTypePolicy(policy), **REFERENCES[name][1])
    half = keras.ops.cast(STATES, pooling.compute_dtype)
    vectors, weights = pooling(half, MASK, keras.ops.cast(GUIDE, pooling.compute_dtype))
    assert keras.backend.standardize_dtype(vectors.dtype) == pooling.compute_dtype
    assert keras.backend.standardize_dtype(weights.dtype) == "float32"
    assert_close(keras.ops.sum(weights, -1), [1, 1, 0])


def test_the_penalty_is_of_hops_that_look_alike():
    pooling = make("self_attention", units=6, hops=3, penalty=0.5)
    pooling(STATES[:1], MASK[:1])
    hidden, scores = weights_of(pooling)
    attention = reference.softmax((np.tanh(STATES[0].astype("float64") @ hidden) @ scores).T)
    expected = 0.5 * np.square(attention @ attention.T - np.eye(3)).sum()
    (result,) = pooling.losses
    assert float(result) == pytest.approx(expected, rel=1e-5)


def test_the_penalty_ignores_empty_rows():
    """A device of several fills its part of a batch with empty rows; here they fill the batch."""
    penalties = []
    for rows in (1, 3):
        pooling = make("self_attention", units=6, hops=3, penalty=0.5)
        lengths = np.array([5, 0, 0])[:rows, None]
        pooling(STATES[:rows], np.arange(5)[None] < lengths)
        penalties.append(float(pooling.losses[0]))
    assert penalties[1] == pytest.approx(penalties[0], rel=1e-6)
    pooling(STATES, np.zeros((3, 5), bool))
    assert float(pooling.losses[0]) == 0.0


def test_a_guide_is_needed():
    with pytest.raises(ValueError, match="needs a guide"):
        make("top_down")(STATES, MASK)


@pytest.mark.parametrize("name", sorted(POOLINGS))
def test_the_mask_is_that_of_keras_or_all_positions(name):
    pooling = make(name)
    guide = {"guide": GUIDE} if pooling.needs_guide else {}
    for ours, other in zip(
        pooling(STATES, **guide), pooling(STATES, np.ones((3, 5), bool), **guide), strict=True
    ):
        assert_close(ours, other)
    ids = np.array([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
    embedded = keras.layers.Embedding(9, 4, mask_zero=True)(ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        implicit = pooling(embedded, **guide)
    explicit = pooling(np.array(embedded), ids > 0, **guide)
    for ours, other in zip(implicit, explicit, strict=True):
        assert_close(ours, other)
    assert getattr(implicit[0], "_keras_mask", None) is None


def test_states_of_another_rank_are_refused():
    with pytest.raises(ValueError, match=r"states must be \[batch, length, depth\]"):
        make("mean")(STATES[0])
