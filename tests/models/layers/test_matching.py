"""Attention between two sentences compared with NumPy."""

import numpy as np

from regard.models.layers.matching import CrossAttention

RANDOM = np.random.default_rng(5)
STATES = RANDOM.normal(size=(2, 4, 3)).astype("float32")
OTHER = RANDOM.normal(size=(2, 5, 3)).astype("float32")
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
OTHER_MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], bool)
SAME = np.array([[0, 1, 0, 0], [1, 0, 0, 0]], bool)


def created(**settings):
    layer = CrossAttention(6, **{"attention": {"score": "dot"}, **settings})
    layer.build((None, None, 3))
    return layer


def test_as_its_formula():
    layer = created()
    kernel, bias = (np.asarray(w, "float64") for w in layer.compose.weights)
    composed, weights = layer(STATES, MASK, OTHER, OTHER_MASK, SAME)
    for row, (n, m) in enumerate([(4, 5), (2, 3)]):
        a, b = STATES[row, :n].astype("float64"), OTHER[row, :m].astype("float64")
        scores = np.exp(a @ b.T)
        alignments = scores / scores.sum(-1, keepdims=True)
        result = alignments @ b
        both = np.concatenate([a, result, a - result, a * result, SAME[row, :n, None]], -1)
        np.testing.assert_allclose(weights[row, :n, :m], alignments, atol=1e-5)
        np.testing.assert_allclose(
            composed[row, :n], np.maximum(both @ kernel + bias, 0), atol=1e-5
        )
    np.testing.assert_array_equal(composed[1, 2:], 0.0)
    np.testing.assert_array_equal(weights[1, 2:], 0.0)
    np.testing.assert_array_equal(weights[1, :, 3:], 0.0)


def test_of_an_empty_other_nothing_is_found():
    layer = created()
    _, weights = layer(STATES, MASK, OTHER, np.zeros((2, 5), bool), SAME)
    np.testing.assert_array_equal(weights, 0.0)
