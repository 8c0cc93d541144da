"""Scores: how well a query matches each key.

A new score is one class in a file of this package and one line in ``SCORES``.
"""

from regard.models.attention.scores.base import Score
from regard.models.attention.scores.location import LocationScore
from regard.models.attention.scores.perceptron import AdditiveScore, ConcatScore
from regard.models.attention.scores.products import (
    CosineScore,
    DotScore,
    GeneralScore,
    ScaledDotScore,
)

SCORES: dict[str, type[Score]] = {
    "additive": AdditiveScore,
    "concat": ConcatScore,
    "cosine": CosineScore,
    "dot": DotScore,
    "general": GeneralScore,
    "location": LocationScore,
    "scaled_dot": ScaledDotScore,
}

__all__ = [
    "SCORES",
    "AdditiveScore",
    "ConcatScore",
    "CosineScore",
    "DotScore",
    "GeneralScore",
    "LocationScore",
    "ScaledDotScore",
    "Score",
]
