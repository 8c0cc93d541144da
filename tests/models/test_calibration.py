"""Calibrated probabilities, against scipy's optimizer and results by hand."""

import numpy as np
import pytest
from scipy.optimize import minimize

from regard.models.calibration import (
    BINS,
    MIN_ROWS,
    area_under_roc,
    bin_numbers,
    expected_calibration_error,
    fit_logistic,
    reliability,
)


def draw(rows=400, seed=0):
    generator = np.random.default_rng(seed)
    features = generator.normal([3.0, -200.0, 0.1], [0.5, 40.0, 0.001], (rows, 3))
    logits = 2 * (features[:, 0] - 3) - (features[:, 1] + 200) / 40
    return features, (generator.random(rows) < 1 / (1 + np.exp(-logits))).astype(float)


def test_the_regression_minimizes_its_loss():
    features, labels = draw()
    inputs = (features - features.mean(axis=0)) / features.std(axis=0)

    def loss(weights):
        logits = inputs @ weights[:-1] + weights[-1]
        return np.logaddexp(0, -logits * (2 * labels - 1)).sum() + weights[:-1] @ weights[:-1] / 2

    expected = minimize(loss, np.zeros(4), method="BFGS", tol=1e-12).x
    model = fit_logistic(features, labels)
    assert model is not None
    probabilities = 1 / (1 + np.exp(-(inputs @ expected[:-1] + expected[-1])))
    np.testing.assert_allclose(model.probability(features), probabilities, atol=1e-6)
    # The bias is not penalized, so the mean is that of the labels.
    assert model.probability(features).mean() == pytest.approx(labels.mean())


def test_unusual_features():
    features, labels = draw()
    plain = fit_logistic(features, labels)
    constant = fit_logistic(np.column_stack([features, np.full(len(features), 1e6)]), labels)
    assert constant.weights[3] == 0
    np.testing.assert_allclose(constant.weights[:3], plain.weights, rtol=1e-9)
    blank = np.vstack([features, [[np.nan] * 3, [np.inf, 0, 0]]])
    assert fit_logistic(blank, np.append(labels, [1, 1])) == plain
    separated = fit_logistic(labels[:, None], labels)
    assert np.isfinite([*separated.weights, separated.bias]).all()
    assert ((separated.probability(labels[:, None]) > 0.5) == labels).all()


@pytest.mark.parametrize("good", [0, 1, MIN_ROWS - 1, 400 - MIN_ROWS + 1, 400])
def test_too_few_rows_of_a_label(good):
    features, _ = draw()
    assert fit_logistic(features, (np.arange(400) < good).astype(float)) is None
    assert fit_logistic(features[:good], np.ones(good)) is None


def test_reliability_by_hand():
    probabilities = np.array([0.0, 0.04, 0.95, 1.0, 0.5, 0.1])
    labels = np.array([0.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    bins = list(reliability(probabilities, labels))
    assert [(part.low, part.rows, part.share) for part in bins] == [
        (0.0, 2, 0.5),
        (0.1, 1, 0.0),
        (0.5, 1, 0.0),
        (0.9, 2, 1.0),
    ]
    error = (2 * 0.48 + 1 * 0.1 + 1 * 0.5 + 2 * 0.025) / 6
    assert expected_calibration_error(probabilities, labels) == pytest.approx(error)
    assert bin_numbers(np.array([0.999, 1.0])).tolist() == [BINS - 1, BINS - 1]


def test_area_under_roc():
    labels = np.array([0.0, 0.0, 1.0, 1.0])
    assert area_under_roc(np.array([1.0, 2.0, 3.0, 4.0]), labels) == 1.0
    assert area_under_roc(np.array([4.0, 3.0, 2.0, 1.0]), labels) == 0.0
    assert area_under_roc(np.array([1.0, 2.0, 2.0, 2.0]), labels) == 0.75  # of equal scores half
    assert np.isnan(area_under_roc(labels, np.ones(4)))
    scores = np.random.default_rng(1).integers(0, 9, 60).astype(float)
    labels = np.random.default_rng(2).integers(0, 2, 60).astype(float)
    pairs = [
        (a > b) + (a == b) / 2
        for a, is_good in zip(scores, labels, strict=True)
        for b, other in zip(scores, labels, strict=True)
        if is_good and not other
    ]
    assert area_under_roc(scores, labels) == pytest.approx(np.mean(pairs))
