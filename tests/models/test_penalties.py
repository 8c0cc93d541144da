"""Attention penalties compared with NumPy."""

import keras
import numpy as np
import pytest

from regard.models.losses import PENALTIES, penalty

RANDOM = np.random.default_rng(1)
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
REAL = np.array([[1, 1, 1], [1, 0, 0]], "float32")
ALIGNMENT = RANDOM.random((2, 3, 4)).astype("float32") * MASK[:, None]
ALIGNMENT /= ALIGNMENT.sum(-1, keepdims=True)


def doubly_stochastic(weights):
    return sum((1 - weights[:, i].sum()) ** 2 for i in range(weights.shape[1]))


def coverage(weights):
    total, covered = 0.0, np.zeros(weights.shape[1])
    for step in weights:
        total += np.minimum(step, covered).sum()
        covered = covered + step
    return total


REFERENCES = {"doubly_stochastic": doubly_stochastic, "coverage": coverage}


@pytest.mark.parametrize("name", REFERENCES)
def test_as_its_formula(name):
    assert set(REFERENCES) == set(PENALTIES)
    result = PENALTIES[name](ALIGNMENT, MASK, REAL)
    expected = [
        REFERENCES[name](ALIGNMENT[0].astype("float64")),
        REFERENCES[name](ALIGNMENT[1, :1, :2].astype("float64")),
    ]
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_their_sum_is_a_mean_over_the_pieces():
    weights = {"doubly_stochastic": 0.5, "coverage": 2.0}
    expected = sum(
        weight * float(keras.ops.sum(PENALTIES[name](ALIGNMENT, MASK, REAL)))
        for name, weight in weights.items()
    )
    result = penalty(weights, ALIGNMENT, MASK, REAL)
    assert float(result) == pytest.approx(expected / 4, rel=1e-5)
    assert float(penalty({}, ALIGNMENT, MASK, REAL)) == 0.0
