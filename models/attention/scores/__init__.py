"""Scores: how well a query matches each key.

The sections in ``regard.models.settings.attention`` name their classes; see CONTRIBUTING.md.
"""

from regard.models.attention.scores.base import Score
from regard.models.settings import attention

SCORES = attention.SCORES.implementations(Score)

__all__ = ["SCORES", "Score"]
