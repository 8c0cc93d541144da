"""Attention as three choices: a score, an alignment, and a use of the weights."""

from models.attention.alignments import ALIGNMENTS, Alignment, SoftAlignment
from models.attention.attention import Attention
from models.attention.scores import SCORES, DotScore, GeneralScore, Score

__all__ = [
    "ALIGNMENTS",
    "SCORES",
    "Alignment",
    "Attention",
    "DotScore",
    "GeneralScore",
    "Score",
    "SoftAlignment",
]
