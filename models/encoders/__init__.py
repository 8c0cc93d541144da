"""Encoders: from source ids to a memory that a decoder attends to."""

from regard.models.encoders.embedding import EmbeddingEncoder
from regard.models.encoders.recurrent import RecurrentEncoder
from regard.models.encoders.stack import ENCODERS, EncoderStack, create_encoder
from regard.models.encoders.text_convolution import TextConvolutionEncoder
from regard.models.encoders.transformer import TransformerEncoder

__all__ = [
    "ENCODERS",
    "EmbeddingEncoder",
    "EncoderStack",
    "RecurrentEncoder",
    "TextConvolutionEncoder",
    "TransformerEncoder",
    "create_encoder",
]
