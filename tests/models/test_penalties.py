"""Attention penalties compared with NumPy."""

import keras
import numpy as np
import pytest

from regard.models.losses import PENALTIES, penalty
from tests.models import reference

RANDOM = np.random.default_rng(1)
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
REAL = np.array([[1, 1, 1], [1, 0, 0]], "float32")
ALIGNMENT = RANDOM.random((2, 3, 4)).astype("float32") * MASK[:, None]
ALIGNMENT /= ALIGNMENT.sum(-1, keepdims=True)


# By name, so that a test can replace them.
REFERENCES = {"doubly_stochastic": "doubly_stochastic", "coverage": "coverage_loss"}


@pytest.mark.parametrize("name", REFERENCES)
def test_as_its_formula(name):
    assert set(REFERENCES) == set(PENALTIES)
    result = PENALTIES[name](ALIGNMENT, MASK, REAL)
    formula = getattr(reference, REFERENCES[name])
    expected = [
        formula(ALIGNMENT[0].astype("float64")),
        formula(ALIGNMENT[1, :1, :2].astype("float64")),
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
