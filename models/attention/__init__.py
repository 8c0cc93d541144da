"""Attention as three choices: a score, an alignment, and a use of the weights."""

from regard.models.attention.alignments import ALIGNMENTS, Alignment
from regard.models.attention.attention import Attention
from regard.models.attention.multi_head import MultiHeadAttention
from regard.models.attention.pointer import Pointer
from regard.models.attention.scores import SCORES, Score

__all__ = [
    "ALIGNMENTS",
    "SCORES",
    "Alignment",
    "Attention",
    "MultiHeadAttention",
    "Pointer",
    "Score",
]
