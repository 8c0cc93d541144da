"""Every score compared with its formula, and properties of all scores."""

import keras
import numpy as np
import pytest

from regard.models.attention import SCORES
from tests.models.attention import batches
from tests.models.tensors import fill, gradients, numpy
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(3)
OPTIONS = {"additive": {"units": 4, "layers": 2}, "concat": {"units": 3, "layers": 3}}
OPTIONS |= {"location": {"max_source": 5}, "low_rank": {"rank": 2}}
ONE_DEPTH = ("cosine", "dot", "scaled_dot")
CASES = [
    (name, 5 if name in ONE_DEPTH else depth, options)
    for name in sorted(SCORES)
    for depth, options in ((5, {}), (7, OPTIONS.get(name, {})))
]


def created(name, query, keys, dtype="float32", **options):
    layer = SCORES[name](dtype=dtype, **options)
    layer.build(query.shape, keys.shape)
    return fill(layer, RANDOM)


def vectors(length, depth, *lead):
    return RANDOM.normal(size=(*(lead or (2,)), length, depth)).astype("float32")


@pytest.mark.parametrize(("name", "depth", "options"), CASES)
def test_equals_the_formula(name, depth, options):
    query, keys = vectors(3, 5), vectors(4, depth)
    score = created(name, query, keys, **options)
    expected = batches.scores(name, query, keys, score.get_weights())
    assert_close(numpy(score(query, keys)), expected)


@pytest.mark.parametrize("name", sorted(SCORES))
def test_heads_are_independent_rows(name):
    query, keys = vectors(3, 4, 2, 3), vectors(5, 4, 2, 3)
    score = created(name, query, keys)
    result = numpy(score(query, keys))
    flat = numpy(score(query.reshape(6, 3, 4), keys.reshape(6, 5, 4)))
    assert_close(result.reshape(6, 3, 5), flat)


@pytest.mark.parametrize("name", sorted(SCORES))
def test_gradients_by_finite_differences(name):
    """Gradients for queries, keys and every weight in float64."""
    query, keys = vectors(2, 3).astype("float64"), vectors(3, 3).astype("float64")
    score = created(name, query, keys, dtype="float64", **OPTIONS.get(name, {}))

    def value(query, keys):
        return keras.ops.sum(keras.ops.tanh(score(query, keys)))

    def loss(query, keys, *weights):
        return np.tanh(batches.scores(name, query, keys, weights)).sum()

    result = gradients(value, query, keys, layer=score)
    expected = batches.differences(loss, query, keys, *score.get_weights())
    for ours, theirs in zip(result, expected, strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("name", sorted(SCORES))
def test_low_precision_is_close_inside_and_outside_a_call(name, dtype):
    query, keys = vectors(2, 4), vectors(3, 4)
    exact = created(name, query, keys)
    rough = SCORES[name](dtype=dtype)
    rough.build(query.shape, keys.shape)
    rough.set_weights(exact.get_weights())
    low = dtype.removeprefix("mixed_")
    expected = numpy(exact(query, keys))
    outside = rough.match(keras.ops.cast(query, low), rough.prepare(keras.ops.cast(keys, low)))
    assert keras.backend.standardize_dtype(outside.dtype) == low
    assert_close(numpy(outside), expected, low, roundings=20)
    assert_close(numpy(rough(query, keys)), expected, low, roundings=20)


@pytest.mark.parametrize("name", ONE_DEPTH)
def test_unequal_depths_are_refused(name):
    with pytest.raises(ValueError, match=rf"'{name}'.*4 and 6.*'general'"):
        SCORES[name]()(vectors(1, 4), vectors(2, 6))


def test_queries_and_keys_of_different_ranks_are_refused():
    with pytest.raises(
        ValueError, match=r"\[..., length, depth\], but are \(\(2, 4\), \(2, 3, 4\)"
    ):
        SCORES["dot"]()(vectors(2, 4)[0], vectors(3, 4))


def test_the_product_of_two_kernels_is_a_bilinear_form():
    """W = UᵀV: the rank bounds that of the matrix, and a full rank gives any matrix."""
    query, keys = vectors(2, 4), vectors(3, 4)
    low, general = created("low_rank", query, keys, rank=4), created("general", query, keys)
    query_kernel, key_kernel = low.get_weights()
    assert np.linalg.matrix_rank(created("low_rank", query, keys, rank=2).get_weights()[0]) == 2
    general.set_weights([key_kernel @ query_kernel.T])
    assert_close(low(query, keys), general(query, keys))


def test_scores_of_low_rank_have_unit_variance_at_first():
    query, keys = vectors(200, 16), vectors(200, 16)
    score = SCORES["low_rank"](rank=8)
    assert numpy(score(query, keys)).std() == pytest.approx(1.0, abs=0.25)


def test_cosine_has_a_trainable_temperature():
    query, keys = vectors(2, 4), vectors(3, 4)
    score = SCORES["cosine"](strength=3.0)
    score(query, keys)
    assert len(score.trainable_weights) == 1
    assert_close(numpy(score(keys, keys))[0].diagonal(), 3.0)


def test_cosine_with_a_zero_vector_is_zero():
    score, query, keys = SCORES["cosine"](), vectors(1, 4, 1), np.zeros((1, 2, 4), "float32")
    assert (numpy(score(query, keys)) == 0).all()
    assert np.isfinite(gradients(lambda keys: score(query, keys), keys)[0]).all()


def test_cosine_of_large_vectors_does_not_overflow():
    score = SCORES["cosine"](dtype="float16")
    large = np.full((1, 1, 8), 300.0, "float16")  # the sum of squares is 720000
    np.testing.assert_allclose(numpy(score(large, large)), 10.0, rtol=1e-2)


def test_location_ends_at_its_longest_source():
    query, keys = vectors(2, 3), vectors(6, 3)
    score = created("location", query, keys, max_source=4)
    result = numpy(score(query, keys))
    assert np.isfinite(result[..., :4]).all()
    assert (result[..., 4:] == -np.inf).all()
    mask = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]], bool)
    np.testing.assert_array_equal(score.valid_mask(mask), mask & (np.arange(6) < 4))
