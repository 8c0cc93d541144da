"""Attention between two sentences, and attention flow, compared with NumPy."""

import numpy as np

from regard.models.layers.matching import AttentionFlow, CrossAttention
from tests.models.layers import reference
from tests.tolerances import assert_close

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
        expected, alignments = reference.cross_attention(a, b, SAME[row, :n], kernel, bias)
        assert_close(weights[row, :n, :m], alignments)
        assert_close(composed[row, :n], expected)
    np.testing.assert_array_equal(composed[1, 2:], 0.0)
    np.testing.assert_array_equal(weights[1, 2:], 0.0)
    np.testing.assert_array_equal(weights[1, :, 3:], 0.0)


def test_of_an_empty_other_nothing_is_found():
    layer = created()
    _, weights = layer(STATES, MASK, OTHER, np.zeros((2, 5), bool), SAME)
    np.testing.assert_array_equal(weights, 0.0)


def flow():
    layer = AttentionFlow()
    layer.build((None, None, 3))
    layer.set_weights([RANDOM.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def test_attention_flow_follows_the_paper():
    layer = flow()
    w_h, w_u = (np.asarray(d.kernel, "float64")[:, 0] for d in (layer.rows, layer.columns))
    w = np.concatenate([w_h, w_u, np.asarray(layer.product, "float64")])
    output, to_question, to_passage = map(np.asarray, layer(STATES, MASK, OTHER, OTHER_MASK))
    for row, (n, m) in enumerate([(4, 5), (2, 3)]):
        h, u = STATES[row, :n].astype("float64"), OTHER[row, :m].astype("float64")
        expected, forth, back = reference.attention_flow(h, u, w)
        assert_close(output[row, :n], expected)
        assert_close(to_question[row, :n, :m], forth)
        assert_close(to_passage[row, :n], back)
    for padded in (output[1, 2:], to_question[1, 2:], to_question[1, :, 3:], to_passage[1, 2:]):
        np.testing.assert_array_equal(padded, 0.0)


def test_attention_flow_of_an_empty_question_is_finite():
    output, to_question, to_passage = flow()(STATES, MASK, OTHER, np.zeros_like(OTHER_MASK))
    np.testing.assert_array_equal(to_question, 0.0)
    assert_close(to_passage[1], [0.5, 0.5, 0.0, 0.0])
    assert np.isfinite(output).all()


def test_a_batch_without_rows():
    flow = AttentionFlow()
    rows, mask = np.zeros((0, 3, 4), "float32"), np.zeros((0, 3), bool)
    assert [tuple(x.shape) for x in flow(rows, mask, rows, mask)] == [(0, 3, 16), (0, 3, 3), (0, 3)]
