"""The sections ``model.encoder``, ``model.decoder`` and ``model.pretrained``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag
from typing_extensions import Self

from regard.models.settings.base import ByType, Listed, Rate, Section, Size, absolute, option


class RecurrentLayersConfig(Section):
    """Options of recurrent encoders and decoders."""

    cell: Literal["lstm", "gru", "rnn"] = option("lstm", "Recurrent cell.")
    units: Size = option(256, "Width of each layer, in each direction.")
    layers: Size = option(1, "Number of layers.")
    residual: bool = option(False, "Residual connections between layers of equal width.")
    dropout_type: Literal["plain", "variational"] = option(
        "plain", "plain: a new dropout mask at every step; variational: one mask per sequence."
    )


TransformerPositions = Literal["sinusoidal", "learned", "rotary", "relative", "alibi", "none"]


class PositionsConfig(Section):
    """Options of layers that know the positions of their inputs."""

    positions: Literal["none", "sinusoidal", "learned"] = option("none", "Position encoding.")
    max_positions: Size = option(1024, "Number of learned positions, for positions: learned.")
    position_merge: Literal["add", "concat"] = option(
        "add",
        "How sinusoidal and learned positions join the embeddings. add: their sum; concat: a "
        "projection of both, concatenated.",
    )

    def width(self, inputs: int) -> int:
        """Return the width of the outputs from that of the inputs."""
        return inputs


class TransformerLayersConfig(PositionsConfig):
    """Options of Transformer encoders and decoders; their width is ``model.embedding``."""

    layers: Size = option(6, "Number of layers of this side.")
    heads: Size = option(8, "Number of attention heads; must divide the width.")
    feed_forward: Size = option(1024, "Width of the feed-forward layer.")
    norm: Literal["pre", "post"] = option(
        "pre", "Layer normalization before each sub-layer, or after it (Vaswani 2017)."
    )
    positions: TransformerPositions = option(  # type: ignore[assignment]
        "sinusoidal", "Position encoding."
    )
    max_distance: Size = option(
        16, "Distance from which all positions are equally far, for positions: relative."
    )
    activation: Literal["relu", "gelu", "swiglu"] = option(
        "relu", "Activation of the feed-forward layer."
    )
    attention_dropout: Rate = option(0.0, "Dropout rate of the attention weights.")
    activation_dropout: Rate = option(0.0, "Dropout rate inside the feed-forward layer.")


class RecurrentEncoderConfig(RecurrentLayersConfig):
    """Recurrent layers (Bahdanau 2015, Luong 2015)."""

    type: Literal["recurrent"] = option("recurrent", "Encoder type.")
    bidirectional: bool = option(True, "Read in both directions, which doubles the output width.")
    reverse: bool = option(False, "Read the source from its end (Sutskever 2014).")

    def width(self, inputs: int) -> int:
        """Return the width of the outputs from that of the inputs."""
        return self.units * (2 if self.bidirectional else 1)


class TransformerEncoderConfig(TransformerLayersConfig):
    """Self-attention layers (Vaswani 2017)."""

    type: Literal["transformer"] = option("transformer", "Encoder type.")


class TextConvolutionEncoderConfig(PositionsConfig):
    """Gated convolutions with residual connections (Gehring 2017)."""

    type: Literal["convolutional"] = option("convolutional", "Encoder type.")
    units: Size = option(256, "Width of each layer.")
    layers: Size = option(4, "Number of layers.")
    kernel_size: Size = option(3, "Number of neighbouring positions that a layer combines.")

    def width(self, inputs: int) -> int:
        """Return the width of the outputs from that of the inputs."""
        return self.units


class EmbeddingEncoderConfig(PositionsConfig):
    """Token embeddings without further layers."""

    type: Literal["embedding"] = option("embedding", "Encoder type.")


EncoderConfig = Annotated[
    RecurrentEncoderConfig
    | TransformerEncoderConfig
    | TextConvolutionEncoderConfig
    | EmbeddingEncoderConfig,
    ByType("recurrent"),
]
# Of a list each encoder reads the outputs of the one before.
EncodersConfig = Annotated[
    Annotated[EncoderConfig, Tag("[one]")] | Annotated[Listed[EncoderConfig], Tag("[list]")],
    Discriminator(lambda value: "[list]" if isinstance(value, list | tuple) else "[one]"),
]


class _CopyingDecoderConfig(Section):
    pointer_generator: bool = option(
        False,
        "Copy source tokens in addition to generating tokens, also words that the vocabulary "
        "lacks (See 2017); needs tokenizer.shared.",
    )


class _RecurrentDecoderConfig(RecurrentLayersConfig, _CopyingDecoderConfig):
    initial_state: Literal["encoder", "zeros"] = option(
        "encoder",
        "encoder: initialize the decoder with the final states of the encoder, or with "
        "the mean of its outputs; zeros: attention is the only connection to the source.",
    )


class LuongDecoderConfig(_RecurrentDecoderConfig):
    """Attention after the recurrent layers (Luong 2015)."""

    type: Literal["luong"] = option("luong", "Decoder type.")
    input_feeding: bool = option(True, "Feed the attentional state into the next step.")


class BahdanauDecoderConfig(_RecurrentDecoderConfig):
    """Attention before the recurrent layers (Bahdanau 2015)."""

    type: Literal["bahdanau"] = option("bahdanau", "Decoder type.")
    readout: Literal["maxout", "tanh"] = option("maxout", "Layer before the softmax.")


class TransformerDecoderConfig(TransformerLayersConfig, _CopyingDecoderConfig):
    """Self-attention and cross-attention in every layer (Vaswani 2017)."""

    type: Literal["transformer"] = option("transformer", "Decoder type.")


DecoderConfig = Annotated[
    LuongDecoderConfig | BahdanauDecoderConfig | TransformerDecoderConfig,
    ByType("luong"),
]


class PretrainedEmbeddingsConfig(Section):
    """Word vectors in the text format of GloVe or word2vec, for the initial embeddings.

    A task adds the keys of its files; each of them is a path or null.
    """

    trainable: bool = option(True, "Train the embeddings further.")
    oov: Literal["random", "zero"] = option(
        "random",
        "Embeddings of tokens that the file does not contain: random vectors of the "
        "same scale, or zeros.",
    )

    def files(self) -> dict[str, str]:
        """Return the file of each key that has one."""
        own = PretrainedEmbeddingsConfig.model_fields
        values = {name: getattr(self, name) for name in type(self).model_fields if name not in own}
        return {name: path for name, path in values.items() if path is not None}

    def resolved(self, base: Path) -> Self:
        """Return a copy with absolute paths."""
        return self.model_copy(
            update={name: absolute(base, path) for name, path in self.files().items()}
        )


class TokenEmbeddingsConfig(PretrainedEmbeddingsConfig):
    """Word vectors in the text format of GloVe or word2vec, for the initial embeddings."""

    file: str = Field(description="File, .txt or .gz.", examples=["glove.6B.300d.txt"])
