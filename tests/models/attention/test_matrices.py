"""Attention as products of matrices, as the documentation shows it."""

import keras
import numpy as np
import pytest

from regard.models.attention import Attention, MultiHeadAttention
from regard.models.attention.alignments.soft import SoftAlignment
from tests.models.attention import matrix_reference
from tests.models.layers import reference as layer_reference
from tests.models.tensors import gradients, weights_by_name
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(12)
ALLOWED = np.array([[1, 1, 1, 0, 1], [1, 0, 0, 0, 0], [0, 1, 1, 1, 1]], bool)
NAMES = ("project_query/kernel", "project_keys/kernel", "project_values/kernel", "output/kernel")


def normal(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def created(heads, width, *shapes, **settings):
    """A layer without biases, as in the papers, and its weights by their names."""
    keras.utils.set_random_seed(5)
    layer = MultiHeadAttention(heads, width, **settings)
    layer.build(*shapes)
    weights = weights_by_name(layer)
    assert all((value == 0).all() for name, value in weights.items() if name.endswith("bias"))
    return layer, weights


def test_rows_and_columns():
    query, keys, values = normal(3, 4), normal(5, 4), normal(5, 6)
    context, weights = Attention("scaled_dot")(
        query[None], keys[None], values[None], mask=ALLOWED[None]
    )
    expected, expected_weights = matrix_reference.attention(query, keys, values, ALLOWED)
    assert_close(context[0], expected)
    assert_close(weights[0], expected_weights)
    columns = matrix_reference.attention_of_columns(query.T, keys.T, values.T, ALLOWED.T)
    assert_close(context[0], columns[0].T)
    assert_close(weights[0], columns[1].T)


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_of_one_head(causal):
    inputs = normal(1, 5, 6)
    layer, weights = created(1, 8, (None, None, 6))
    kernels = np.split(weights["project/kernel"], 3, axis=1)
    allowed = matrix_reference.causal_mask(5) if causal else True
    expected, expected_weights = matrix_reference.self_attention(inputs[0], *kernels, allowed)
    outputs, attended = layer(inputs, causal=causal)
    assert_close(outputs[0], expected @ weights["output/kernel"])
    assert_close(attended[0], expected_weights)


def test_several_heads():
    query, memory = normal(1, 3, 6), normal(1, 5, 7)
    layer, weights = created(2, 8, query.shape, memory.shape, memory.shape)
    kernels = [weights[name] for name in NAMES]
    expected, expected_weights = matrix_reference.multi_head(
        query[0], memory[0], *kernels, 2, ALLOWED
    )
    outputs, attended = layer(query, memory, memory, mask=ALLOWED[None], per_head=True)
    assert_close(outputs[0], expected)
    assert_close(attended[0], expected_weights)


def test_hard_attention():
    query, keys, values = normal(1, 1, 4), normal(1, 5, 4), normal(1, 5, 6)
    soft, weights = (np.asarray(x, "float64")[0, 0] for x in Attention("dot")(query, keys, values))
    best, _ = Attention("dot", "hard")(query, keys, values)
    assert_close(best[0, 0], layer_reference.hard_attention(weights, values[0]))
    random, a = np.random.default_rng(1), weights / weights.sum()
    samples = [layer_reference.hard_attention(a, values[0], random) for _ in range(4000)]
    np.testing.assert_allclose(np.mean(samples, axis=0), soft, atol=0.1)


def test_the_gradient_of_a_softmax():
    scores = normal(1, 1, 5)
    weights = np.asarray(SoftAlignment()(scores), "float64")[0, 0]
    expected = matrix_reference.softmax_gradient(weights)
    for position in range(5):
        (gradient,) = gradients(lambda x, n=position: SoftAlignment()(x)[0, 0, n], scores)
        assert_close(gradient[0, 0], expected[position])


def test_relative_positions():
    """With three vectors and five positions, so that most distances are clipped."""
    inputs = normal(1, 5, 6)
    relative = {"type": "relative", "max_distance": 1}
    layer, weights = created(1, 8, (None, None, 6), relative=relative)
    projected = [inputs[0] @ kernel for kernel in np.split(weights["project/kernel"], 3, axis=1)]
    expected, expected_weights = layer_reference.relative_attention(
        *projected, weights["relative/keys"], weights["relative/values"]
    )
    outputs, attended = layer(inputs)
    assert_close(outputs[0], expected @ weights["output/kernel"])
    assert_close(attended[0], expected_weights)


def test_linear_biases():
    inputs = normal(1, 5, 6)
    layer, weights = created(4, 8, (None, None, 6), relative="alibi")
    plain, _ = created(4, 8, (None, None, 6))
    plain.set_weights(layer.get_weights())
    options = {"per_head": True, "return_context": False, "return_weights": False}
    biased, scores = (each(inputs, return_scores=True, **options) for each in (layer, plain))
    expected = np.asarray(scores[0]) + layer_reference.alibi_bias(5, 4)
    assert_close(biased[0], expected)
    assert weights["project/kernel"].any()
