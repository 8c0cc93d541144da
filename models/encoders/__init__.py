"""Encoders: from source ids to a memory that a decoder can look at."""

from models.encoders.recurrent import RecurrentEncoder

ENCODERS = {"recurrent": RecurrentEncoder}

__all__ = ["ENCODERS", "RecurrentEncoder"]
