"""Encoders: from source ids to a memory that a decoder attends to."""

from regard.models.encoders.embedding import EmbeddingEncoder
from regard.models.encoders.recurrent import RecurrentEncoder
from regard.models.encoders.transformer import TransformerEncoder

ENCODERS = {
    "recurrent": RecurrentEncoder,
    "transformer": TransformerEncoder,
    "embedding": EmbeddingEncoder,
}

__all__ = ["ENCODERS", "EmbeddingEncoder", "RecurrentEncoder", "TransformerEncoder"]
