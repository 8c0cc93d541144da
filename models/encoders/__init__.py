"""Encoders: from source ids to a memory that a decoder can look at."""

from models.encoders.recurrent import RecurrentEncoder
from models.encoders.transformer import TransformerEncoder
from models.encoders.vectors import VectorsEncoder

ENCODERS = {
    "recurrent": RecurrentEncoder,
    "transformer": TransformerEncoder,
    "vectors": VectorsEncoder,
}

__all__ = ["ENCODERS", "RecurrentEncoder", "TransformerEncoder", "VectorsEncoder"]
