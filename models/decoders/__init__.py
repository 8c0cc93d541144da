"""Decoders: ``start(memory)``, ``step(tokens, state)`` and ``unroll(tokens, memory)``."""

from regard.models.decoders.bahdanau import BahdanauDecoder
from regard.models.decoders.base import Decoder
from regard.models.decoders.feed_forward import FeedForwardDecoder
from regard.models.decoders.luong import LuongDecoder
from regard.models.decoders.pointer import PointerDecoder
from regard.models.decoders.transformer import TransformerDecoder

# Those that write text; a pointer has no vocabulary.
DECODERS: dict[str, type[Decoder]] = {
    "bahdanau": BahdanauDecoder,
    "feed_forward": FeedForwardDecoder,
    "luong": LuongDecoder,
    "transformer": TransformerDecoder,
}

__all__ = [
    "DECODERS",
    "BahdanauDecoder",
    "Decoder",
    "FeedForwardDecoder",
    "LuongDecoder",
    "PointerDecoder",
    "TransformerDecoder",
]
