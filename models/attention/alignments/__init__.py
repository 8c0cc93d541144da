"""Alignments: from scores to the weights with which the source is looked at.

A new alignment is one class in a file here and one line in ``ALIGNMENTS``.
"""

from models.attention.alignments.base import Alignment, masked_softmax
from models.attention.alignments.hard import HardAlignment
from models.attention.alignments.local import LocalMAlignment, LocalPAlignment
from models.attention.alignments.soft import SoftAlignment
from models.attention.alignments.sparse import SparsemaxAlignment, TopKAlignment

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
