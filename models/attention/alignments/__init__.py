"""Alignments: from scores to attention weights.

A new alignment is one class in a file of this package and one line in ``ALIGNMENTS``.
"""

from regard.models.attention.alignments.base import Alignment, masked_softmax
from regard.models.attention.alignments.hard import HardAlignment
from regard.models.attention.alignments.local import LocalMAlignment, LocalPAlignment
from regard.models.attention.alignments.soft import SoftAlignment
from regard.models.attention.alignments.sparse import SparsemaxAlignment, TopKAlignment

ALIGNMENTS: dict[str, type[Alignment]] = {
    "hard": HardAlignment,
    "local_m": LocalMAlignment,
    "local_p": LocalPAlignment,
    "soft": SoftAlignment,
    "sparsemax": SparsemaxAlignment,
    "top_k": TopKAlignment,
}

__all__ = [
    "ALIGNMENTS",
    "Alignment",
    "HardAlignment",
    "LocalMAlignment",
    "LocalPAlignment",
    "SoftAlignment",
    "SparsemaxAlignment",
    "TopKAlignment",
    "masked_softmax",
]
