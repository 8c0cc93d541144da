"""Calibrated probabilities: logistic regression, and how well probabilities agree with outcomes.

Everything is float64 NumPy. The features of a model's outputs are in ``models/tasks/confidence``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

BINS = 10
# The regression needs this many rows of either kind; with fewer, the data say nothing.
MIN_ROWS = 10
_L2, _STEPS, _TOLERANCE = 1.0, 100, 1e-10
_CONSTANT = 1e-9  # a feature with a smaller deviation has no weight


@dataclasses.dataclass(frozen=True)
class LogisticModel:
    """A probability as a function of features ``x``: 1 / (1 + exp(-(weights · x + bias)))."""

    weights: tuple[float, ...]
    bias: float

    def probability(self, features: np.ndarray) -> np.ndarray:
        """Return the probabilities ``[rows]`` of features ``[rows, n]``."""
        return _sigmoid(features @ np.array(self.weights) + self.bias)


def fit_logistic(features: np.ndarray, labels: np.ndarray) -> LogisticModel | None:
    """Fit a logistic regression by Newton's method (iteratively reweighted least squares).

    Platt 1999, "Probabilistic Outputs for Support Vector Machines"; the features are standardized,
    and the squares of their weights, without the bias, are penalized (L2, factor 1/2), so that the
    optimum is finite and unique.

    Args:
        features: ``[rows, n]``; rows with a value that is not finite are left out.
        labels: ``[rows]``, 1 or 0.

    Returns:
        The model of the features as they are; None with fewer than `MIN_ROWS` rows of either label.
    """
    is_usable = np.isfinite(features).all(axis=1)
    features = np.asarray(features, np.float64)[is_usable]
    labels = np.asarray(labels, np.float64)[is_usable]
    if min(labels.sum(), (1 - labels).sum()) < MIN_ROWS:
        return None
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    is_constant = deviation < _CONSTANT * np.maximum(1.0, np.abs(mean))
    inverse = np.where(is_constant, 0.0, 1.0 / np.where(is_constant, 1.0, deviation))
    inputs = np.column_stack([(features - mean) * inverse, np.ones(len(features))])
    penalty = np.append(np.full(features.shape[1], _L2), 0.0)
    weights = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):
        expected = _sigmoid(inputs @ weights)
        gradient = inputs.T @ (expected - labels) + penalty * weights
        curvature = (inputs * (expected * (1 - expected))[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < _TOLERANCE:
            break
    scaled = weights[:-1] * inverse
    return LogisticModel(tuple(scaled.tolist()), float(weights[-1] - scaled @ mean))


@dataclasses.dataclass(frozen=True)
class ReliabilityBin:
    """The rows whose probability is from ``low`` up to ``high``.

    Attributes:
        low: the lower bound.
        high: the upper bound.
        rows: the number of rows.
        probability: the mean probability.
        share: the share of rows with the label 1.
    """

    low: float
    high: float
    rows: int
    probability: float
    share: float


def reliability(probabilities: np.ndarray, labels: np.ndarray) -> Iterator[ReliabilityBin]:
    """Yield the bins of a reliability diagram that have rows, of equal widths.

    Niculescu-Mizil and Caruana 2005, "Predicting Good Probabilities With Supervised Learning", §4.

    Args:
        probabilities: ``[rows]``, 0 to 1.
        labels: ``[rows]``, 1 or 0.
    """
    bins = bin_numbers(probabilities)
    for number in np.unique(bins):
        is_inside = bins == number
        yield ReliabilityBin(
            low=float(number) / BINS,
            high=float(number + 1) / BINS,
            rows=int(is_inside.sum()),
            probability=float(probabilities[is_inside].mean()),
            share=float(labels[is_inside].mean()),
        )


def bin_numbers(probabilities: np.ndarray) -> np.ndarray:
    """Return the bin of each probability, 0 to `BINS` - 1."""
    return np.minimum((probabilities * BINS).astype(int), BINS - 1)


def expected_calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean difference between probability and share in the bins, weighted by rows.

    Guo et al. 2017, "On Calibration of Modern Neural Networks", §2 (eq. 3).
    """
    bins = reliability(probabilities, labels)
    return sum(part.rows * abs(part.probability - part.share) for part in bins) / len(labels)


def area_under_roc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the probability that a row with label 1 has a higher score than one with label 0.

    Equal scores count half (Mann and Whitney's U). NaN if all labels are equal.
    """
    _, groups, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[groups]
    positive, negative = labels.sum(), (1 - labels).sum()
    if not positive or not negative:
        return float("nan")
    wins = ranks @ labels - positive * (positive + 1) / 2
    return float(wins / (positive * negative))


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * values))
