"""Every score compared with its formula, and properties of all scores."""

import keras
import numpy as np
import pytest

from regard.models.attention import SCORES
from tests.models.attention import reference

RANDOM = np.random.default_rng(3)
OPTIONS = {"additive": {"units": 4}, "location": {"max_source": 5}}
ONE_DEPTH = ("cosine", "dot", "scaled_dot")
CASES = [
    (name, 5 if name in ONE_DEPTH else depth, options)
    for name in sorted(SCORES)
    for depth, options in ((5, {}), (7, OPTIONS.get(name, {})))
]


def created(name, query, keys, dtype="float32", **options):
    """A score with random weights, because zero biases would test nothing."""
    layer = SCORES[name](dtype=dtype, **options)
    layer.build(query.shape, keys.shape)
    layer.set_weights([RANDOM.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def vectors(length, depth, *lead):
    return RANDOM.normal(size=(*(lead or (2,)), length, depth)).astype("float32")


def numpy(x, dtype="float64"):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, dtype))


@pytest.mark.parametrize(("name", "depth", "options"), CASES)
def test_equals_the_formula(name, depth, options):
    query, keys = vectors(3, 5), vectors(4, depth)
    score = created(name, query, keys, **options)
    expected = reference.scores(name, query, keys, score.get_weights())
    np.testing.assert_allclose(numpy(score(query, keys)), expected, atol=1e-5)


@pytest.mark.parametrize("name", sorted(SCORES))
def test_prepared_keys_give_the_same_scores(name):
    query, keys = vectors(1, 4), vectors(6, 4)
    score = created(name, query, keys)
    whole = score(query, keys)
    np.testing.assert_allclose(score.match(query, score.prepare(keys)), whole, atol=1e-6)


@pytest.mark.parametrize("name", sorted(SCORES))
def test_heads_are_independent_rows(name):
    query, keys = vectors(3, 4, 2, 3), vectors(5, 4, 2, 3)
    score = created(name, query, keys)
    result = numpy(score(query, keys))
    flat = numpy(score(query.reshape(6, 3, 4), keys.reshape(6, 5, 4)))
    np.testing.assert_allclose(result.reshape(6, 3, 5), flat, atol=1e-6)


@pytest.mark.parametrize("name", sorted(SCORES))
def test_gradients_by_finite_differences(name):
    """Gradients for queries, keys and every weight in float64."""
    import tensorflow as tf

    query, keys = vectors(2, 3).astype("float64"), vectors(3, 3).astype("float64")
    score = created(name, query, keys, dtype="float64", **OPTIONS.get(name, {}))
    weights = [np.asarray(w) for w in score.get_weights()]
    inputs = [tf.constant(query), tf.constant(keys)]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = tf.reduce_sum(tf.tanh(score(*inputs)))
    result = tape.gradient(value, [*inputs, *(w.value for w in score.weights)])

    def loss(query, keys, *weights):
        return np.tanh(reference.scores(name, query, keys, weights)).sum()

    arguments = [query, keys, *weights]
    for i, gradient in enumerate(result):
        expected = reference.differences(
            lambda x, i=i: loss(*arguments[:i], x, *arguments[i + 1 :]), arguments[i]
        )
        gradient = np.zeros_like(expected) if gradient is None else np.asarray(gradient)
        np.testing.assert_allclose(gradient, expected, atol=1e-6)


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
    np.testing.assert_allclose(numpy(outside), expected, atol=0.15, rtol=0.05)
    np.testing.assert_allclose(numpy(rough(query, keys)), expected, atol=0.15, rtol=0.05)


@pytest.mark.parametrize("name", ONE_DEPTH)
def test_unequal_depths_are_refused(name):
    with pytest.raises(ValueError, match=rf"'{name}'.*4 and 6.*'general'"):
        SCORES[name]()(vectors(1, 4), vectors(2, 6))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("additive", {"units": 0}, "at least 1, not 0"),
        ("concat", {"units": -3}, "at least 1, not -3"),
        ("cosine", {"strength": 0.0}, "above 0, not 0"),
        ("location", {"max_source": 0}, "max_source must be at least 1"),
    ],
)
def test_invalid_options_are_refused(name, options, words):
    with pytest.raises(ValueError, match=words):
        SCORES[name](**options)


@pytest.mark.parametrize("name", sorted(SCORES))
def test_config_round_trip(name):
    options = {"cosine": {"strength": 3.0}, "concat": {"units": 2}, **OPTIONS}.get(name, {})
    layer = SCORES[name](name="mine", dtype="float32", **options)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is type(layer)
    assert again.get_config() == layer.get_config()
    assert options.items() <= layer.get_config().items()


def test_cosine_has_a_trainable_temperature():
    query, keys = vectors(2, 4), vectors(3, 4)
    score = SCORES["cosine"](strength=3.0)
    score(query, keys)
    assert len(score.trainable_weights) == 1
    np.testing.assert_allclose(numpy(score(keys, keys))[0].diagonal(), 3.0, atol=1e-5)


def test_cosine_with_a_zero_vector_is_zero():
    import tensorflow as tf

    score = SCORES["cosine"]()
    keys = tf.zeros((1, 2, 4))
    with tf.GradientTape() as tape:
        tape.watch(keys)
        result = score(vectors(1, 4, 1), keys)
    assert (result.numpy() == 0).all()
    assert np.isfinite(tape.gradient(result, keys)).all()


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
    assert numpy(score.valid_mask(mask), "int32").tolist() == [
        [1, 1, 1, 1, 0, 0],
        [1, 1, 0, 0, 0, 0],
    ]
