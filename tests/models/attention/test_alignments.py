"""Every alignment compared with its formula, and properties of all alignments."""

import keras
import numpy as np
import pytest

from regard.models.attention import ALIGNMENTS
from regard.models.attention.alignments import masked_softmax
from tests.models.attention import batches, reference
from tests.models.tensors import fill, gradients, numpy
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(7)
SOURCE = 9
LENGTHS = [9, 4, 1, 0]
CASES = [
    ("soft", {}),
    ("hard", {}),
    ("sparsemax", {}),
    ("top_k", {"k": 3}),
    ("top_k", {"k": 20}),
    ("thresholded", {"threshold": 0.1}),
    ("thresholded", {"threshold": 0.9}),
    ("local_m", {"window": 1}),
    ("local_m", {"window": 30}),
    ("local_p", {"window": 1}),
    ("local_p", {"window": 4, "units": 3}),
]
SMOOTH = [case for case in CASES if case[0] != "hard"]


def created(name, **options):
    layer = ALIGNMENTS[name](**options)
    layer.build((None, None, 5))
    return fill(layer, RANDOM)


def inputs(scale=2.0):
    scores = (RANDOM.normal(size=(4, 6, SOURCE)) * scale).astype("float32")
    query = RANDOM.normal(size=(4, 6, 5)).astype("float32")
    mask = np.arange(SOURCE) < np.array(LENGTHS)[:, None, None]
    return scores, query, mask


def weights_of(layer):
    return [numpy(w) for w in layer.trainable_weights]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_equals_the_formula(name, options):
    scores, query, mask = inputs()
    layer = created(name, **options)
    result = numpy(layer(scores, mask=mask, query=query))
    expected = batches.alignment(name, scores, query, LENGTHS, options, weights_of(layer))
    assert_close(result, expected)
    assert (result[~np.broadcast_to(mask, result.shape)] == 0).all()


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_mask_may_differ_between_steps(name, options):
    """As in causal self-attention."""
    scores, query, _ = inputs()
    layer = created(name, **options)
    causal = np.broadcast_to(np.tri(6, SOURCE, dtype=bool), (4, 6, SOURCE))
    result = numpy(layer(scores, mask=causal, query=query))
    for t in range(6):
        alone = layer(
            scores[:, t : t + 1, : t + 1], query=query[:, t : t + 1], position=np.array([[t]])
        )
        assert_close(result[:, t : t + 1, : t + 1], numpy(alone))
        assert (result[:, t, t + 1 :] == 0).all()


@pytest.mark.parametrize(("name", "options"), [*CASES, ("hard", {"training": "straight_through"})])
def test_scores_of_minus_infinity_give_zero_weights(name, options):
    """Such scores, as of a location beyond the longest source, must not give NaN."""
    scores, query, mask = inputs()
    scores[:, :, 2:] = -np.inf
    for training in (False, True):
        weights = numpy(created(name, **options)(scores, mask=mask, query=query, training=training))
        assert np.isfinite(weights).all()
        assert (weights[3] == 0).all()
        assert (weights[:, :, 2:] == 0).all()


@pytest.mark.parametrize(("name", "options"), SMOOTH)
def test_gradients_by_finite_differences(name, options):
    """Gradients for scores, query and weights, of a loss that depends on each alignment weight."""
    scores, query, mask = inputs(scale=1.0)
    layer = created(name, **options)
    taste = RANDOM.normal(size=scores.shape)

    def value(scores, query):
        weights = layer(scores, mask=mask, query=query)
        return keras.ops.sum(keras.ops.cast(weights, "float64") * taste)

    def loss(scores, query, *weights):
        return (taste * batches.alignment(name, scores, query, LENGTHS, options, weights)).sum()

    result = gradients(value, scores, query, layer=layer)
    expected = batches.differences(loss, scores, query, *weights_of(layer))
    for ours, theirs in zip(result, expected, strict=True):
        assert_close(ours, theirs)


def test_softmax_equals_the_formula():
    scores = RANDOM.normal(size=(2, 3, 4)) * 5
    mask = np.array([[[1, 1, 1, 0]], [[1, 0, 1, 1]]], bool)
    expected = np.exp(scores) * mask
    expected /= expected.sum(-1, keepdims=True)
    result = masked_softmax(scores.astype("float32"), mask)
    assert_close(result, expected)


def test_softmax_does_not_overflow():
    scores = np.array([[[1e4, 1e4 - 1, -1e4]]], "float32")
    expected = reference.softmax(scores[0, 0].astype("float64"))
    assert_close(numpy(masked_softmax(scores))[0, 0], expected)
    mask = np.ones((1, 1, 3), bool)
    assert_close(numpy(masked_softmax(scores, mask))[0, 0], expected)


def test_sparsemax_by_hand():
    """Martins and Astudillo 2016, §2.3: in two dimensions it is a line between two plateaus."""
    differences = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0], "float32")
    scores = np.stack([differences, np.zeros(7, "float32")], axis=-1)[None]
    result = numpy(ALIGNMENTS["sparsemax"]()(scores))[0, :, 0]
    assert_close(result, [0, 0, 0.25, 0.5, 0.75, 1, 1])


def test_top_k_prefers_the_first_of_equal_scores():
    result = numpy(ALIGNMENTS["top_k"](k=2)(np.array([[[1.0, 3.0, 1.0, 1.0]]], "float32")))
    assert (result[0, 0] > 0).tolist() == [True, True, False, False]
    assert_close(result.sum(), 1.0)


def test_thresholded_by_hand():
    scores = np.log(np.array([[[0.05, 0.25, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4]]], "float32"))
    result = numpy(ALIGNMENTS["thresholded"](threshold=0.28)(scores))[0]
    assert_close(result, [[0, 0, 3 / 7, 4 / 7]] * 2)
    best = numpy(ALIGNMENTS["thresholded"](threshold=0.9)(scores))[0]
    np.testing.assert_array_equal(best, [[0, 0, 0, 1]] * 2)
    equal = numpy(ALIGNMENTS["thresholded"](threshold=0.9)(np.zeros((1, 1, 4), "float32")))
    np.testing.assert_allclose(equal[0, 0], 0.25)


def test_scores_of_another_rank_are_refused():
    with pytest.raises(ValueError, match="expected ndim=3, found ndim=2"):
        ALIGNMENTS["soft"]()(np.zeros((2, 3), "float32"))


def test_local_m_follows_the_position_and_stays_in_the_source():
    layer = created("local_m", window=1)
    mask = np.array([[[1] * 7 + [0] * 2]], bool)
    scores = np.zeros((1, 4, SOURCE), "float32")
    result = numpy(layer(scores, mask=mask, position=np.array([[0, 3, 6, 50]])))
    windows = [np.flatnonzero(row).tolist() for row in result[0]]
    assert windows == [[0, 1], [2, 3, 4], [5, 6], [5, 6]]


def test_local_p_uses_the_unpadded_source_length():
    """p = S · sigmoid(0) = S / 2 where the vector is zero; σ = D / 2."""
    layer = created("local_p", window=2)
    layer.vector.assign(keras.ops.zeros_like(layer.vector))
    mask = np.arange(SOURCE) < np.array([8, 4])[:, None, None]
    scores = np.zeros((2, 1, SOURCE), "float32")
    result = numpy(layer(scores, mask=mask, query=np.ones((2, 1, 5), "float32")))[:, 0]
    gauss = np.exp(-np.array([4.0, 1, 0, 1, 4]) / 2)
    assert_close(result[0, 2:7], gauss / 5)
    assert_close(result[1, :4], gauss[:4] / 4)
    assert result[0, [0, 1, 7, 8]].max() == result[1, 4:].max() == 0
