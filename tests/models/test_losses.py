import numpy as np
import pytest
import tensorflow as tf

from regard.models.losses import guided_alignment, token_losses
from tests.models.tensors import gradients
from tests.tolerances import assert_close, close_to


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_equals_the_formula(smoothing):
    random = np.random.default_rng(1)
    logits = random.normal(size=(2, 3, 5)) * 3
    targets = random.integers(0, 5, size=(2, 3))
    logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    desired = np.full(logits.shape, smoothing / 5)
    for b, t in np.ndindex(2, 3):
        desired[b, t, targets[b, t]] += 1 - smoothing
    smoothed, plain, correct = token_losses(logits.astype("float32"), targets, smoothing)
    assert_close(smoothed, -(desired * logp).sum(-1))
    chosen = np.take_along_axis(logp, targets[..., None], -1)[..., 0]
    assert_close(plain, -chosen)
    np.testing.assert_array_equal(correct, logits.argmax(-1) == targets)


@pytest.mark.parametrize("far", [50.0, 500.0])
def test_what_is_all_but_impossible_has_its_loss(far):
    """Its probability has no number in float32, its logarithm has."""
    logits = np.float32([[[far, 0.0, -far]]])
    result = [float(token_losses(logits, np.int32([[k]])).plain[0, 0]) for k in range(3)]
    assert result == pytest.approx([0.0, far, 2 * far], rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_vocabulary_that_is_known_only_at_run_time(smoothing):
    """As a pointer's, which is the inputs."""
    random = np.random.default_rng(4)
    logits = random.normal(size=(2, 3, 5)).astype("float32")
    targets = random.integers(0, 5, size=(2, 3))

    def result(logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = token_losses(logits, targets, smoothing)
            total = tf.reduce_sum(losses[0]) + tf.reduce_sum(losses[1])
        return (*losses, tape.gradient(total, logits))

    graph = tf.function(result, input_signature=[tf.TensorSpec([None, None, None])])
    for one, other in zip(graph(logits), result(tf.constant(logits)), strict=True):
        assert_close(one, other)


def test_low_precision_logits_are_summed_in_float32():
    logits = np.zeros((1, 1, 5000), "float16")
    plain = token_losses(logits, np.zeros((1, 1), "int32")).plain
    assert float(plain[0, 0]) == close_to(np.log(5000), roundings=1000)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradient_is_the_softmax_minus_the_targets(smoothing):
    random = np.random.default_rng(2)
    logits = random.normal(size=(2, 3, 5)) * 3
    targets = random.integers(0, 5, size=(2, 3))
    up_smoothed, up_plain = random.normal(size=(2, 2, 3))
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    here = np.eye(5)[targets]
    even = (1 - smoothing) * here + smoothing / 5
    expected = up_smoothed[..., None] * (softmax - even) + up_plain[..., None] * (softmax - here)

    @tf.function
    def total(logits):
        smoothed, plain, _ = token_losses(logits, targets, smoothing)
        return tf.reduce_sum(smoothed * up_smoothed) + tf.reduce_sum(plain * up_plain)

    (gradient,) = gradients(total, logits.astype("float32"))
    assert_close(gradient, expected)


def test_guided_alignment_is_the_cross_entropy_per_target_token():
    """Token 0 is linked to two source tokens, token 1 to none, token 2 to one of weight 0."""
    weights = np.array([[[0.5, 0.3, 0.2], [1.0, 0, 0], [0.4, 0.6, 0]], np.eye(3)], "float32")
    links = np.array([[[1, 1, 0], [0, 0, 0], [0, 0, 1]], np.eye(3)[[1, 0, 2]]], "float32")
    mask = np.array([[1, 1, 1], [1, 0, 0]], "float32")
    first = -(np.log(0.5) + np.log(0.3)) / 2
    expected = (first - 2 * np.log(1e-9)) / 4
    assert float(guided_alignment(weights, links, mask)) == pytest.approx(expected, rel=1e-5)
    (gradient, *_) = gradients(lambda x: guided_alignment(x, links, mask), weights)
    np.testing.assert_allclose(gradient[0, 0], [-0.5 / 0.5 / 4, -0.5 / 0.3 / 4, 0.0], rtol=1e-5)
    assert np.isfinite(gradient).all()
    assert not gradient[1, 1:].any()
