"""Encoders: from source ids to a memory that a decoder can look at."""

from models.encoders.recurrent import RecurrentEncoder
from models.encoders.transformer import TransformerEncoder

ENCODERS = {"recurrent": RecurrentEncoder, "transformer": TransformerEncoder}

__all__ = ["ENCODERS", "RecurrentEncoder", "TransformerEncoder"]
