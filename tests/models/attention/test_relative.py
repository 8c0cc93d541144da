"""Relative positions, against the papers' formulas in float64."""

import keras
import numpy as np
import pytest

from regard.models.attention.multi_head import MultiHeadAttention
from regard.models.attention.relative import AlibiPositions
from tests.models.tensors import fill, gradients, numpy, round_trip, weights_by_name
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(9)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], bool)
KINDS = [{"type": "relative", "max_distance": 2}, {"type": "alibi"}]
every_kind = pytest.mark.parametrize("relative", KINDS, ids=lambda kind: kind["type"])


def created(relative, heads=2, **settings):
    layer = MultiHeadAttention(heads, 4 * heads, relative=relative, **settings)
    layer.build((None, None, 6))
    return fill(layer, RANDOM, 0.5)


def softmax(scores, mask):
    """Zeros for a row without allowed positions."""
    weights = np.exp(scores - scores.max(-1, keepdims=True)) * mask
    return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30)


def reference(layer, inputs, mask):
    """Shaw et al. 2018, eq. 3-4, or Press et al. 2022, §3, pair by pair of positions."""
    weights, relative = weights_by_name(layer), layer.settings["relative"]
    projected = inputs @ weights["project/kernel"] + weights["project/bias"]
    q, k, v = np.split(projected, 3, -1)
    contexts, alignments, length = [], [], inputs.shape[1]
    for head in range(layer.heads):
        part = slice(4 * head, 4 * head + 4)
        scores = np.zeros((len(inputs), length, length))
        values = np.zeros((*scores.shape, 4))
        for i in range(length):
            for j in range(length):
                key, value, bias = k[:, j, part], v[:, j, part], 0.0
                if relative["type"] == "alibi":
                    bias = -(2.0 ** (-8 * (head + 1) / layer.heads)) * abs(i - j)
                else:
                    at = min(max(j - i, -2), 2) + 2
                    key = key + weights["relative/keys"][at]
                    value = value + weights["relative/values"][at]
                scores[:, i, j] = (q[:, i, part] * key).sum(-1) / 2.0 + bias
                values[:, i, j] = value
        alignments.append(softmax(scores, mask))
        contexts.append(np.einsum("bij,bijd->bid", alignments[-1], values))
    outputs = np.concatenate(contexts, -1) @ weights["output/kernel"] + weights["output/bias"]
    return outputs, np.stack(alignments, 1)


@every_kind
@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_equals_the_paper(relative, causal):
    layer, inputs = created(relative), RANDOM.normal(size=(3, 5, 6)).astype("float32")
    valid = MASK[:, None, :] & (np.tril(np.ones((5, 5), bool)) | (not causal))
    outputs, weights = layer(inputs, mask=MASK, causal=causal, per_head=True)
    expected, expected_weights = reference(layer, inputs, valid)
    assert_close(outputs, expected)
    assert_close(weights, expected_weights)


@every_kind
def test_returned_scores_include_the_positions(relative):
    """The scores are those of which the weights are the softmax."""
    layer, inputs = created(relative), RANDOM.normal(size=(2, 5, 6)).astype("float32")
    _, weights, scores = layer(inputs, per_head=True, return_scores=True)
    _, expected = reference(layer, inputs, np.ones((2, 5, 5), bool))
    assert_close(softmax(numpy(scores), True), expected)
    assert_close(weights, expected)


@every_kind
def test_lengths_beyond_those_of_training(relative):
    layer, inputs = created(relative), RANDOM.normal(size=(1, 40, 6)).astype("float32")
    expected, _ = reference(layer, inputs, np.ones((1, 1, 40), bool))
    assert_close(layer(inputs)[0], expected)


@every_kind
def test_a_padded_row_equals_the_row_alone(relative):
    layer, inputs = created(relative), RANDOM.normal(size=(3, 5, 6)).astype("float32")
    alone, _ = layer(inputs[1:2, :2])
    assert_close(layer(inputs, mask=MASK)[0][1:2, :2], alone)


@every_kind
def test_gradients_are_finite_and_reach_every_weight(relative):
    layer, inputs = created(relative), RANDOM.normal(size=(3, 5, 6)).astype("float32")
    result = gradients(lambda x: keras.ops.sum(layer(x, mask=MASK)[0] ** 2), inputs, layer=layer)
    assert all(np.isfinite(gradient).all() for gradient in result)
    assert all(np.any(gradient) for gradient in result)


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (1, [2**-8]),
        (8, [2**-i for i in range(1, 9)]),
        (3, [2**-4, 2**-8, 2**-2]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
    ],
)
def test_slopes_of_alibi(heads, slopes):
    bias = AlibiPositions(heads, 4).scores(None, np.array([[0, 3], [-3, 0]], "int32"))
    np.testing.assert_allclose(bias[:, 0, 1], np.multiply(slopes, -3), rtol=1e-6)
    np.testing.assert_allclose(bias[:, 1], bias[:, 0, ::-1], rtol=1e-6)


@every_kind
def test_the_configuration_is_complete(relative):
    layer = created(relative)
    assert round_trip(layer).get_config() == layer.get_config()


@pytest.mark.parametrize(
    ("settings", "memory"), [({"score": "general"}, None), ({}, (None, None, 6))]
)
def test_other_scores_and_memories_are_refused(settings, memory):
    with pytest.raises(ValueError, match="scaled_dot"):
        MultiHeadAttention(2, 8, relative="alibi", **settings).build((None, None, 6), memory)
