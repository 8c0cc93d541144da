"""Sampling and gradients of hard alignments."""

import keras
import numpy as np
import pytest

from regard.models.attention.alignments import masked_softmax
from regard.models.attention.alignments.hard import HardAlignment
from regard.models.noise import gumbel_noise
from tests.models.attention import reference
from tests.models.tensors import gradients, numpy
from tests.tolerances import assert_close

SCORES = np.array([0.0, 1.0, 2.0, -1.0, 3.0], "float32")
MASK = np.array([1, 1, 1, 1, 0], bool)


def rows(batch, target=1):
    scores = np.broadcast_to(SCORES, (batch, target, 5)).copy()
    return scores, np.broadcast_to(MASK, (batch, 1, 5))


def hard(**options):
    return HardAlignment(**{"expectation": 0.0, "seed": 5, **options})


@pytest.mark.parametrize("training", ["reinforce", "straight_through"])
def test_samples_follow_the_softmax(training):
    scores, mask = rows(500, 8)
    weights = numpy(hard(training=training)(scores, mask=mask, training=True))
    assert_close(weights.sum(-1), 1.0)
    assert_close(weights.max(-1), 1.0)
    assert (weights[..., 4] == 0).all()
    expected = numpy(masked_softmax(SCORES, MASK))[:4] * 4000
    result = weights.sum((0, 1))[:4]
    # Chi-square with 3 degrees of freedom: 16.3 is exceeded once in a thousand seeds.
    assert ((result - expected) ** 2 / expected).sum() < 16.3


@pytest.mark.parametrize("training", ["reinforce", "straight_through"])
def test_a_sample_is_the_best_score_with_noise(training):
    """The noise is a function of the key, the row, the step and the position."""
    random_key = np.array([3, 4], "uint32")
    scores = np.random.default_rng(2).normal(size=(6, 4, 5)).astype("float32")
    weights = numpy(hard(training=training)(scores, training=True, random_key=random_key))
    row, step = np.arange(6)[:, None, None], np.arange(4)[:, None]
    noise = numpy(gumbel_noise(1, *random_key, row, step, np.arange(5)))
    for b, t in np.ndindex(6, 4):
        assert_close(weights[b, t], reference.sample(scores[b, t], noise[b, t]))
    assert (weights.argmax(-1) != scores.argmax(-1)).any()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_first_of_equal_scores_is_the_best(scale):
    """Which of two equal words is the best one would depend on rounding."""
    scores = scale * np.array([0.0, 2.0, 1.0, 2.0, 3.0])
    noise = 1 + 5e-7 * np.random.default_rng(1).standard_normal((8, 1, 5))
    mask = np.broadcast_to(MASK, (8, 1, 5))
    weights = numpy(hard()((scores * noise).astype("float32"), mask=mask))
    assert_close(weights, np.broadcast_to(np.eye(5)[1], (8, 1, 5)))


def test_samples_differ_between_calls_and_repeat_with_the_seed():
    scores, mask = rows(50)
    first, other = hard(), hard()
    calls = [numpy(first(scores, mask=mask, training=True)) for _ in range(2)]
    assert (calls[0] != calls[1]).any()
    for call in calls:
        np.testing.assert_array_equal(numpy(other(scores, mask=mask, training=True)), call)


def test_steps_in_a_loop_sample_the_same_as_all_steps_together():
    scores, mask = rows(20, 6)
    layer = hard(expectation=0.5)
    random_key = layer.draw_key()
    whole = numpy(layer(scores, mask=mask, training=True, random_key=random_key))
    for t in range(6):
        now, position = scores[:, t : t + 1], np.full((20, 1), t)
        step = layer(now, mask=mask, position=position, training=True, random_key=random_key)
        np.testing.assert_array_equal(step, whole[:, t : t + 1])


@pytest.mark.parametrize(
    ("share", "low", "high"), [(0.0, 0, 0), (0.3, 240, 360), (1.0, 1000, 1000)]
)
def test_a_share_of_the_rows_is_soft(share, low, high):
    scores, mask = rows(1000, 2)
    layer = hard(expectation=share)
    weights, distribution = layer.align_with_distribution(scores, mask=mask, training=True)
    soft = (numpy(weights) == numpy(distribution)).all(-1)
    assert (soft.all(-1) == soft.any(-1)).all()  # a row is soft at all of its steps or at none
    assert low <= soft[:, 0].sum() <= high


@pytest.mark.parametrize("training", ["reinforce", "straight_through"])
def test_inference_takes_the_argmax_and_returns_its_probability(training):
    scores, mask = rows(2)
    weights, distribution = hard(training=training).align_with_distribution(scores, mask=mask)
    assert numpy(weights)[:, 0].tolist() == [[0, 0, 1, 0, 0]] * 2
    assert_close(numpy(distribution), numpy(masked_softmax(scores, mask)))


def test_only_rewarded_samples_are_stochastic():
    assert hard(training="reinforce").stochastic
    assert not hard(training="straight_through").stochastic


def test_samples_in_inference_follow_the_softmax_and_repeat():
    """Over seeds and steps; the other rows of a batch, and the call, change nothing."""
    scores, mask = rows(2, 800)
    layers = [hard(inference="sample", seed=seed) for seed in range(3)]
    results = [numpy(layer(scores, mask=mask)) for layer in layers]
    assert (results[0] != results[1]).any()
    for layer, result in zip(layers, results, strict=True):
        np.testing.assert_array_equal(result, numpy(layer(scores, mask=mask)))
        np.testing.assert_array_equal(result[1:], numpy(layer(scores[1:], mask=mask[1:])))
        position = np.full((2, 1), 5)
        step = numpy(layer(scores[:, 5:6], mask=mask, position=position))
        np.testing.assert_array_equal(result[:, 5:6], step)
    counts = np.stack(results)[:, 0].sum((0, 1))
    assert counts[4] == 0
    expected = numpy(masked_softmax(SCORES, MASK))[:4] * 2400
    # Chi-square with 3 degrees of freedom: 16.3 is exceeded once in a thousand runs.
    assert ((counts[:4] - expected) ** 2 / expected).sum() < 16.3


def test_the_default_trains_the_scores():
    scores, mask = rows(3, 2)
    taste = np.array([1.0, -2.0, 3.0, 0.5, 7.0], "float32")
    layer = HardAlignment()
    (result,) = gradients(
        lambda x: keras.ops.sum(layer(x, mask=mask, training=True) * taste), scores
    )
    assert np.any(result)
    assert not layer.stochastic


@pytest.mark.parametrize(
    ("options", "learns"),
    [
        ({"training": "reinforce"}, False),
        ({"training": "straight_through"}, True),
        ({"training": "reinforce", "expectation": 1.0}, True),
    ],
)
def test_straight_through_gradients(options, learns):
    taste = np.array([1.0, -2.0, 3.0, 0.5, 7.0], "float32")
    scores, mask = rows(3, 2)
    (result,) = gradients(
        lambda x: keras.ops.sum(hard(**options)(x, mask=mask, training=True) * taste), scores
    )
    (soft,) = gradients(lambda x: keras.ops.sum(masked_softmax(x, mask) * taste), scores)
    assert_close(result, soft if learns else 0.0 * soft)


def test_the_distribution_has_a_gradient():
    scores, mask = rows(3, 2)

    def value(scores):
        _, distribution = hard().align_with_distribution(scores, mask=mask, training=True)
        return keras.ops.sum(distribution[..., 0])

    assert np.any(gradients(value, scores)[0])
