"""Scores: how well a query matches each key. CONTRIBUTING.md describes how to add one."""

from pathlib import Path

from regard.core.plugins import PluginTable
from regard.models.attention.scores.base import Score
from regard.models.layer_sources import implementations

_MODULES = "regard.models.attention.scores.*"
SCORES: PluginTable[type[Score]] = PluginTable(
    "regard.scores", implementations(Path(__file__).parent, _MODULES), Score, implementations=True
)

__all__ = ["SCORES", "Score"]
