"""Decoders: ``start(memory)``, ``step(tokens, state)`` and ``unroll(tokens, memory)``."""

from models.decoders.bahdanau import BahdanauDecoder
from models.decoders.base import Decoder
from models.decoders.luong import LuongDecoder
from models.decoders.pointer import PointerDecoder
from models.decoders.transformer import TransformerDecoder

# Those that write text; a pointer has no vocabulary.
DECODERS: dict[str, type[Decoder]] = {
    "bahdanau": BahdanauDecoder,
    "luong": LuongDecoder,
    "transformer": TransformerDecoder,
}

__all__ = [
    "DECODERS",
    "BahdanauDecoder",
    "Decoder",
    "LuongDecoder",
    "PointerDecoder",
    "TransformerDecoder",
]
