import keras
import numpy as np
import pytest

from regard.models.attention import ALIGNMENTS, SCORES
from regard.models.attention.base import MASK_BIAS
from regard.models.attention.multi_head import MultiHeadAttention
from regard.models.layers.positions import RotaryPositions
from tests.models.attention import batches
from tests.models.tensors import fill, gradients, numpy, weights_by_name
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(4)
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], bool)
OPTIONS = {"location": {"max_source": 8}, "top_k": {"k": 2}, "local_m": {"window": 2}}
OPTIONS["local_p"] = OPTIONS["local_m"]
# One of everything is enough where every pair would take the same way through the code.
SOME = [("scaled_dot", "soft"), ("general", "soft"), ("dot", {"type": "local_m", "window": 2})]


def inputs():
    query = RANDOM.normal(size=(3, 3, 6)).astype("float32")
    return query, RANDOM.normal(size=(3, 5, 7)).astype("float32")


def reference(layer, query, keys, mask):
    """Vaswani et al. 2017, §3.2.2, in float64; mask ``[batch, target, source]``."""
    weights = weights_by_name(layer)
    mask = np.broadcast_to(mask, (*query.shape[:2], keys.shape[1]))
    outputs = np.zeros((*query.shape[:2], layer.width)) + weights["output/bias"]
    alignments = np.zeros((len(query), layer.heads, *mask.shape[1:]))
    for b, t in np.ndindex(*query.shape[:2]):
        valid = mask[b, t]
        if valid.any():
            result = batches.multi_head(weights, layer.heads, query[b, t], keys[b, valid])
            outputs[b, t], alignments[b, :, t, valid] = result[0], result[1].T
    return outputs, alignments


def created(*args, memory=True, **settings):
    layer = MultiHeadAttention(2, 8, *args, **settings)
    layer.build((None, None, 6), (None, None, 7) if memory else None)
    return fill(layer, RANDOM, 0.5)


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_equals_the_paper(causal):
    query = RANDOM.normal(size=(3, 5, 6)).astype("float32")
    layer = created(memory=False)
    valid = MASK[:, None, :] & (np.tril(np.ones((5, 5), bool)) | (not causal))
    outputs, weights = layer(query, mask=MASK, causal=causal, per_head=True)
    expected, expected_weights = reference(layer, query, query, valid)
    assert_close(outputs, expected)
    assert_close(weights, expected_weights)


def test_attention_to_a_memory_equals_the_paper():
    query, memory = inputs()
    layer = created()
    outputs, weights = layer(query, memory, mask=MASK)
    expected, expected_weights = reference(layer, query, memory, MASK[:, None, :])
    assert_close(outputs, expected)
    assert_close(weights, expected_weights.mean(1))


def test_attention_to_a_memory_coincides_with_keras():
    query, memory = inputs()
    layer = created()
    theirs = keras.layers.MultiHeadAttention(2, 4, output_shape=8)
    theirs.build(query.shape, memory.shape)
    ours = weights_by_name(layer)
    values = []
    for kind, heads in (("kernel", (-1, 2, 4)), ("bias", (2, 4))):
        parts = np.split(ours[f"project_memory/{kind}"], 2, -1)
        values.append([x.reshape(heads) for x in (ours[f"project_query/{kind}"], *parts)])
    output = [ours["output/kernel"].reshape(2, 4, 8), ours["output/bias"]]
    theirs.set_weights([w for pair in zip(*values, strict=True) for w in pair] + output)
    expected = theirs(query, memory, attention_mask=MASK[:, None, :])
    assert_close(layer(query, memory, mask=MASK)[0][:2], expected[:2])


@pytest.mark.parametrize("alignment", sorted(ALIGNMENTS))
@pytest.mark.parametrize("score", sorted(SCORES))
def test_every_pair_of_score_and_alignment(score, alignment):
    query, memory = inputs()
    layer = created(*({"type": name, **OPTIONS.get(name, {})} for name in (score, alignment)))
    outputs, weights = layer(query, memory, mask=MASK, per_head=True)
    weights = numpy(weights)
    assert weights.shape == (3, 2, 3, 5)
    assert (weights >= 0).all()
    assert (weights[1, :, :, 2:] == 0).all()
    assert (weights[2] == 0).all()
    if alignment != "local_p":  # whose Gaussian is no distribution
        assert_close(weights[:2].sum(-1), 1.0)
    bias = np.asarray(layer.output_projection.bias)
    assert_close(outputs[2], np.tile(bias, (3, 1)))
    alone, alone_weights = layer(query[1:2], memory[1:2, :2], mask=MASK[1:2, :2], per_head=True)
    assert_close(outputs[1:2], alone)
    assert_close(weights[1:2, :, :, :2], alone_weights)


@pytest.mark.parametrize(
    ("rotary", "relative"),
    [
        (False, None),
        (True, None),
        (False, {"type": "relative", "max_distance": 2}),
        (False, "alibi"),
    ],
)
def test_steps_equal_the_whole_sequence(rotary, relative):
    """Two hypotheses per row; both continue the second after two steps."""
    query = RANDOM.normal(size=(2, 2, 4, 6)).astype("float32")
    layer, positions = created(memory=False, relative=relative), RotaryPositions()

    def angles(first, last):
        at = np.arange(first, last, dtype="int32")[None]
        return positions.angles(at, layer.depth) if rotary else None

    cache, ancestors = layer.cache(2, 0), np.zeros([2, 0, 2], bool)
    for t in range(4):
        if t == 2:
            query[:, 0, :2], ancestors = query[:, 1, :2], np.stack([ancestors[1], ancestors[1]])
        ancestors = np.concatenate([ancestors, np.eye(2, dtype=bool)[:, None]], axis=1)
        unseen = np.where(ancestors.reshape(1, 2, -1), 0, MASK_BIAS).astype("float32")
        now, bias = query[:, :, t].reshape(4, 6), np.repeat(unseen, 2, axis=0)
        one, cache = layer.step(now, cache, bias, 2 * t, angles(t, t + 1))
        whole, _ = layer(query.reshape(4, 4, 6), causal=True, angles=angles(0, 4))
        assert_close(one, whole[:, t])
    assert tuple(cache["values"].shape) == (2, 2, 8, 4)


@pytest.mark.parametrize(("score", "alignment"), SOME)
def test_a_query_per_hypothesis_equals_all_queries_together(score, alignment):
    query, memory = inputs()
    layer = created(score, alignment)
    prepared = layer.prepare(memory, MASK)
    position = np.full([3, 3], 2, "int32")
    expected, weights, _ = layer.attend_with_distribution(query, prepared, position)
    result, attention_weights = layer.attend_once(query.reshape(9, 6), prepared, np.int32(2))
    assert_close(numpy(result).reshape(3, 3, 8), expected)
    assert_close(attention_weights, weights)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("mask", [None, MASK, RANDOM.random((3, 5, 5)) < 0.5])
def test_the_standard_pair_equals_the_general_way(mask, memory, causal):
    """Outputs, weights and gradients of scaled dot products with a softmax."""
    query = RANDOM.normal(size=(3, 5, 6)).astype("float32")
    sources = (RANDOM.normal(size=(3, 5, 7)).astype("float32"),) if memory else ()
    layer = created(memory=memory)
    taste = RANDOM.normal(size=(3, 5, 8)).astype("float32")

    def results():
        def value(query, *sources):
            outputs, weights = layer(query, *sources, mask=mask, causal=causal, per_head=True)
            return keras.ops.sum(outputs * taste) + keras.ops.sum(weights**2)

        outputs = layer(query, *sources, mask=mask, causal=causal, per_head=True)
        return [*outputs, *gradients(value, query, *sources, layer=layer)]

    assert layer.is_scaled_dot_soft
    fast = results()
    layer.is_scaled_dot_soft = False
    for ours, expected in zip(fast, results(), strict=True):
        assert_close(ours, expected)


def test_one_query_of_the_standard_pair_equals_the_general_way():
    query, memory = inputs()
    layer = created()
    results = []
    for is_fast in (True, False):
        layer.is_scaled_dot_soft = is_fast
        results.append(layer.attend_once(query[:, 0], layer.prepare(memory, MASK), np.int32(0)))
    for ours, expected in zip(*results, strict=True):
        assert_close(ours, expected)


@pytest.mark.parametrize(("score", "alignment"), SOME)
def test_causal_attention_ignores_later_positions(score, alignment):
    query = RANDOM.normal(size=(1, 4, 6)).astype("float32")
    changed = query.copy()
    changed[:, 3] += 1
    layer = created(score, alignment, memory=False)
    before, after = (numpy(layer(x, causal=True)[0]) for x in (query, changed))
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert not np.allclose(before[:, 3], after[:, 3])


@pytest.mark.parametrize(("score", "alignment"), SOME)
def test_gradients_are_finite_with_a_masked_row(score, alignment):
    layer = created(score, alignment)

    def value(query, memory):
        outputs, weights = layer(query, memory, mask=MASK)
        return keras.ops.sum(outputs**2) + keras.ops.sum(weights**2)

    result = gradients(value, *inputs())
    assert all(np.isfinite(gradient).all() for gradient in result)
    assert (result[1][2] == 0).all()
    assert np.any(result[1][0])


def test_gradient_by_finite_differences():
    query, memory = inputs()
    layer = created()

    def value(query, memory):
        return keras.ops.sum(keras.ops.tanh(layer(query, memory, mask=MASK)[0]))

    def loss(query, memory):
        return np.tanh(reference(layer, query, memory, MASK[:, None, :])[0]).sum()

    result = gradients(value, query, memory)
    expected = batches.differences(loss, query, memory)
    for ours, theirs in zip(result, expected, strict=True):
        assert_close(ours, theirs, roundings=1000)


def test_large_scores_in_low_precision_stay_finite():
    """Exponentials of several hundred overflow float16 without float32 inside."""
    query, memory = inputs()
    outputs, _ = created(dtype="mixed_float16")(query * 30, memory * 30, mask=MASK)
    assert np.isfinite(numpy(outputs)).all()


def test_a_fully_masked_position_does_not_attend_to_the_future():
    attention = MultiHeadAttention(2, 4)
    inputs = np.random.default_rng(0).normal(size=(1, 4, 4)).astype("float32")
    mask = np.array([[False, True, True, True]])
    outputs, weights = attention(inputs, mask=mask, causal=True)
    np.testing.assert_array_equal(weights[0, 0], 0.0)
    later = inputs.copy()
    later[:, 2:] += 1.0
    changed, _ = attention(later, mask=mask, causal=True)
    assert_close(changed[:, :2], outputs[:, :2])
