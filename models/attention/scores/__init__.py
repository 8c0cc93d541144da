"""Scores: how well a query matches each key.

A new score is one class in a file here and one line in ``SCORES``.
"""

from models.attention.scores.base import Score
from models.attention.scores.location import LocationScore
from models.attention.scores.perceptron import AdditiveScore, ConcatScore
from models.attention.scores.products import CosineScore, DotScore, GeneralScore, ScaledDotScore

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
