import keras
import numpy as np
import pytest

from models.attention import SCORES
from models.attention.scores import DotScore, GeneralScore

RANDOM = np.random.default_rng(3)


def reference(name: str, query: np.ndarray, keys: np.ndarray, weights: list) -> np.ndarray:
    """The formulas, one number at a time, in float64."""
    scores = np.zeros((query.shape[0], query.shape[1], keys.shape[1]))
    for b, t, s in np.ndindex(*scores.shape):
        q, k = query[b, t], keys[b, s]
        scores[b, t, s] = {
            "dot": lambda q=q, k=k: q @ k,
            "general": lambda q=q, k=k: k @ weights[0] @ q,
        }[name]()
    return scores


@pytest.mark.parametrize(("name", "depth"), [("dot", 5), ("general", 5), ("general", 8)])
def test_equals_the_formula(name, depth):
    query = RANDOM.normal(size=(2, 3, 5)).astype("float32")
    keys = RANDOM.normal(size=(2, 4, depth)).astype("float32")
    score = SCORES[name]()
    found = keras.ops.convert_to_numpy(score(query, keys))
    weights = [np.asarray(w, "float64") for w in score.get_weights()]
    np.testing.assert_allclose(found, reference(name, query, keys, weights), atol=1e-5)


@pytest.mark.parametrize("name", sorted(SCORES))
def test_prepared_keys_give_the_same_scores(name):
    query = RANDOM.normal(size=(2, 1, 4)).astype("float32")
    keys = RANDOM.normal(size=(2, 6, 4)).astype("float32")
    score = SCORES[name]()
    whole = score(query, keys)
    np.testing.assert_allclose(score.match(query, score.prepare(keys)), whole, atol=1e-6)


def test_dot_needs_equal_depths():
    with pytest.raises(ValueError, match=r"4 and 6.*'general'"):
        DotScore()(np.zeros((1, 1, 4), "float32"), np.zeros((1, 2, 6), "float32"))


@pytest.mark.parametrize("name", sorted(SCORES))
def test_config_round_trip(name):
    layer = SCORES[name](name="mine", dtype="float32")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is type(layer)
    assert again.get_config() == layer.get_config()


def test_general_gradient_by_finite_differences():
    query = RANDOM.normal(size=(1, 2, 3)).astype("float32")
    keys = RANDOM.normal(size=(1, 3, 4)).astype("float32")
    score = GeneralScore()
    score(query, keys)
    kernel = np.asarray(score.kernel, "float64")

    def loss(kernel):
        return np.sum(np.tanh(reference("general", query, keys, [kernel])))

    import tensorflow as tf

    with tf.GradientTape() as tape:
        value = tf.reduce_sum(tf.tanh(score(query, keys)))
    gradient = tape.gradient(value, score.kernel.value).numpy()
    for i, j in np.ndindex(*kernel.shape):
        step = np.zeros_like(kernel)
        step[i, j] = 1e-5
        by_difference = (loss(kernel + step) - loss(kernel - step)) / 2e-5
        assert gradient[i, j] == pytest.approx(by_difference, abs=1e-4)
