"""The reward's loss against its formula, its gradient, and what it teaches."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.models.attention.alignments.hard import HardAlignment
from regard.models.reinforce import Reinforce
from tests.models import reference
from tests.models.tensors import gradients
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(11)
MASK = np.array([[1, 1, 1], [1, 0, 0], [0, 0, 0]], "float32")


def inputs():
    """Three rows of 3, 1 and no real tokens; the first looks at 4 positions, the others at 3."""
    logp = -RANDOM.uniform(0.1, 3.0, size=(3, 3)).astype("float32")
    distribution = RANDOM.dirichlet(np.ones(4), size=(3, 3)).astype("float32")
    distribution[1:, :, 3] = 0
    distribution /= distribution.sum(-1, keepdims=True)
    alignments = np.eye(4, dtype="float32")[RANDOM.integers(0, 3, size=(3, 3))]
    return logp, alignments, distribution


def mean_loss(logp, alignments, distribution, *settings):
    """The loss per token in float64; also the mean reward per token."""
    loss, total = 0.0, 0.0
    for b in range(2):
        length = int(MASK[b].sum())
        row = logp[b, :length].astype("float64")
        total += row.sum()
        samples = alignments[b, :length].argmax(axis=-1)
        loss += reference.reinforce(row, samples, distribution[b].astype("float64"), *settings)
    return loss / MASK.sum(), total / MASK.sum()


def number(x):
    return float(keras.ops.convert_to_numpy(x))


def test_equals_the_formula_with_a_baseline_that_moves():
    layer = Reinforce(reward_weight=0.7, entropy_weight=0.3)
    baseline = 0.0
    for _ in range(3):
        arguments = inputs()
        expected, mean = mean_loss(*arguments, baseline, 0.7, 0.3)
        assert number(layer(*arguments, MASK, training=True)) == pytest.approx(expected, rel=1e-5)
        baseline = 0.9 * baseline + 0.1 * mean
        assert number(layer.baseline) == pytest.approx(baseline, rel=1e-5)
    assert not layer.trainable_weights


def test_the_baseline_stays_outside_of_training_and_without_pieces():
    layer = Reinforce()
    layer(*inputs(), MASK)
    assert number(layer.baseline) == 0.0
    loss = layer(*inputs(), np.zeros((3, 3), bool), training=True)
    assert number(loss) == number(layer.baseline) == 0.0


def test_several_devices_move_the_baseline_like_one():
    """`DistributedTrainStep` weights the devices' changes by their numbers of tokens."""
    arguments = inputs()

    def change(rows):
        layer = Reinforce()
        layer.build()
        layer.baseline.assign(-1.0)
        layer(*(x[rows] for x in arguments), MASK[rows], training=True)
        return number(layer.baseline) + 1.0, MASK[rows].sum()

    changes, tokens = zip(*(change([row]) for row in range(3)), strict=True)
    assert changes[2] == 0.0  # of the row without tokens
    expected, total = change([0, 1, 2])
    assert np.dot(changes, tokens) / total == pytest.approx(expected, rel=1e-5)


def test_only_the_distribution_learns():
    logp, alignments, distribution = inputs()
    layer = Reinforce(entropy_weight=0.0)
    tensors = [tf.constant(x) for x in (logp, alignments, distribution)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        loss = layer(*tensors, MASK)
    of_logp, of_alignments, of_distribution = tape.gradient(loss, tensors)
    assert of_logp is None
    assert of_alignments is None
    expected = np.zeros_like(distribution)
    for b, t in zip(*np.nonzero(MASK), strict=True):
        s = alignments[b, t].argmax()
        reward = (logp * MASK)[b, t:].sum()
        expected[b, t, s] = -reward / distribution[b, t, s] / MASK.sum()
    np.testing.assert_allclose(of_distribution, expected, rtol=1e-4)


def test_more_entropy_costs_less():
    flat = np.full((1, 1, 4), 0.25, "float32")
    sharp = np.array([[[0.97, 0.01, 0.01, 0.01]]], "float32")
    layer = Reinforce(reward_weight=0.0, entropy_weight=1.0)
    one = np.ones((1, 1), "float32")
    assert number(layer(one, flat, flat, one)) == pytest.approx(-np.log(4), rel=1e-5)
    assert number(layer(one, flat, sharp, one)) > -0.2


def test_rows_with_soft_weights_get_no_gradient_from_their_reward():
    alignment, mask = HardAlignment(expectation=1.0), tf.ones((2, 3))

    def loss(scores):
        weights, distribution = alignment.align_with_distribution(scores, training=True)
        return Reinforce(entropy_weight=0.0)(-2.0 * mask, weights, distribution, mask)

    (gradient,) = gradients(loss, RANDOM.normal(size=(2, 3, 4)).astype("float32"))
    assert_close(gradient, 0.0)


def test_the_expected_gradient_is_that_of_the_expected_reward():
    """Averaged over many draws, with rewards known for each position: r_a ∇log p(a) → ∇ Σ p r."""
    rewards = np.array([-1.0, -0.2, -3.0, -0.7], "float32")
    rows, scores = 20000, np.array([0.3, -0.2, 0.5, 0.1], "float32")
    alignment = HardAlignment(expectation=0.0, seed=2)

    def loss(scores):
        tiled = tf.broadcast_to(scores, (rows, 1, 4))
        weights, distribution = alignment.align_with_distribution(tiled, training=True)
        logp = tf.reduce_sum(weights * rewards, axis=-1)
        return Reinforce(entropy_weight=0.0)(logp, weights, distribution, tf.ones((rows, 1)))

    (result,) = gradients(loss, scores)
    (expected,) = gradients(lambda x: -tf.reduce_sum(tf.nn.softmax(x) * rewards), scores)
    np.testing.assert_allclose(result, expected, atol=0.02)


@pytest.mark.parametrize("lengths", [(3,), (1, 2)])
@pytest.mark.parametrize("baseline", [0.0, -0.8])
def test_over_all_alignments_the_expected_gradient_is_that_of_the_expected_loss(lengths, baseline):
    """Every choice of every step, weighted with its probability: no sampling error.

    A step's log-probability depends on all choices up to it, as with input feeding.
    """
    random = np.random.default_rng(4)
    rows, steps, source = len(lengths), max(lengths), 2
    mask = (np.arange(steps) < np.array(lengths)[:, None]).astype("float64")
    scores = tf.Variable(random.normal(size=(rows, steps, source)))
    weights = tf.Variable(random.normal(size=(steps, steps, source)))
    layer = Reinforce(entropy_weight=0.0)
    layer.build()
    layer.baseline.assign(baseline)

    def log_probs(choices):
        history = tf.cumsum(tf.einsum("bts,uts->btu", choices, weights), axis=1)
        return -tf.nn.softplus(tf.reduce_sum(history * tf.eye(steps, dtype="float64"), axis=-1))

    everything = list(itertools.product(range(source), repeat=rows * steps))
    with tf.GradientTape() as exact, tf.GradientTape() as estimated:
        expected_loss = estimate = 0.0
        distribution = tf.nn.softmax(scores)
        for choice in everything:
            choices = tf.one_hot(np.reshape(choice, (rows, steps)), source, dtype="float64")
            probability = tf.reduce_prod(tf.reduce_sum(choices * distribution, axis=-1))
            logp = log_probs(choices)
            loss = -tf.reduce_sum(logp * mask) / mask.sum()
            expected_loss += probability * loss
            total = loss + tf.cast(layer(logp, choices, distribution, mask), "float64")
            estimate += tf.stop_gradient(probability) * total
    variables = [scores, weights]
    for result, expected in zip(
        estimated.gradient(estimate, variables),
        exact.gradient(expected_loss, variables),
        strict=True,
    ):
        assert_close(result, expected)


def test_low_precision_does_not_round_what_comes_in():
    arguments = inputs()
    exact = number(Reinforce()(*arguments, MASK))
    assert number(Reinforce(dtype="mixed_bfloat16")(*arguments, MASK)) == exact
