"""Attention as three choices: a score, an alignment, and a use of the weights."""

from models.attention.alignments import ALIGNMENTS, Alignment
from models.attention.attention import Attention
from models.attention.multi_head import MultiHeadAttention
from models.attention.pointer import Pointer
from models.attention.scores import SCORES, Score

__all__ = [
    "ALIGNMENTS",
    "SCORES",
    "Alignment",
    "Attention",
    "MultiHeadAttention",
    "Pointer",
    "Score",
]
