"""Scores: how well a query matches each key. CONTRIBUTING.md describes how to add one."""

from regard.core.plugins import PluginTable
from regard.models.attention.scores.base import Score

_MODULE = "regard.models.attention.scores"
_OWN = {
    "dot": f"{_MODULE}.products:DotScore",
    "scaled_dot": f"{_MODULE}.products:ScaledDotScore",
    "general": f"{_MODULE}.products:GeneralScore",
    "low_rank": f"{_MODULE}.products:LowRankScore",
    "additive": f"{_MODULE}.perceptron:AdditiveScore",
    "concat": f"{_MODULE}.perceptron:ConcatScore",
    "cosine": f"{_MODULE}.products:CosineScore",
    "location": f"{_MODULE}.location:LocationScore",
}
SCORES: PluginTable[type[Score]] = PluginTable("regard.scores", _OWN, Score, implementations=True)

__all__ = ["SCORES", "Score"]
