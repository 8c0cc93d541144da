"""Alignments: from scores to attention weights. CONTRIBUTING.md describes how to add one."""

from regard.core.plugins import PluginTable
from regard.models.attention.alignments.base import Alignment, masked_softmax

_MODULE = "regard.models.attention.alignments"
_OWN = {
    "soft": f"{_MODULE}.soft:SoftAlignment",
    "hard": f"{_MODULE}.hard:HardAlignment",
    "sparsemax": f"{_MODULE}.sparse:SparsemaxAlignment",
    "top_k": f"{_MODULE}.sparse:TopKAlignment",
    "thresholded": f"{_MODULE}.sparse:ThresholdedAlignment",
    "local_m": f"{_MODULE}.local:LocalMAlignment",
    "local_p": f"{_MODULE}.local:LocalPAlignment",
}
ALIGNMENTS: PluginTable[type[Alignment]] = PluginTable(
    "regard.alignments", _OWN, Alignment, implementations=True
)

__all__ = ["ALIGNMENTS", "Alignment", "masked_softmax"]
