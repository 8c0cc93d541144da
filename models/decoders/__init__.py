"""Decoders: ``start(memory)``, ``step(tokens, state)`` and ``unroll(tokens, memory)``."""

from models.decoders.base import Decoder
from models.decoders.recurrent import RecurrentDecoder

DECODERS = {"recurrent": RecurrentDecoder}

__all__ = ["DECODERS", "Decoder", "RecurrentDecoder"]
