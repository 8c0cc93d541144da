"""Alignments: from scores to attention weights.

The sections in ``regard.models.settings.attention`` name their classes; see CONTRIBUTING.md.
"""

from regard.models.attention.alignments.base import Alignment, masked_softmax
from regard.models.settings import attention

ALIGNMENTS = attention.ALIGNMENTS.implementations(Alignment)

__all__ = ["ALIGNMENTS", "Alignment", "masked_softmax"]
