"""Alignments: from scores to attention weights. CONTRIBUTING.md describes how to add one."""

from pathlib import Path

from regard.core.plugins import PluginTable
from regard.models.attention.alignments.base import Alignment, masked_softmax
from regard.models.layer_sources import implementations

_MODULES = "regard.models.attention.alignments.*"
ALIGNMENTS: PluginTable[type[Alignment]] = PluginTable(
    "regard.alignments",
    implementations(Path(__file__).parent, _MODULES),
    Alignment,
    implementations=True,
)

__all__ = ["ALIGNMENTS", "Alignment", "masked_softmax"]
