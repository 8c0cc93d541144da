"""The sections ``model.encoder``, ``model.decoder`` and ``model.pretrained``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Tag
from typing_extensions import Self

from regard.models.settings.base import Positive, Rate, Section, absolute, by_type


class RecurrentLayersConfig(Section):
    """Options of recurrent encoders and decoders."""

    cell: Literal["lstm", "gru"] = Field(default="lstm", description="Recurrent cell.")
    units: Positive = Field(default=256, description="Width of each layer, in each direction.")
    layers: Positive = Field(default=1, description="Number of layers.")
    residual: bool = Field(
        default=False, description="Residual connections between layers of equal width."
    )
    dropout_type: Literal["plain", "variational"] = Field(
        default="plain",
        description="plain: a new dropout mask at every step; variational: one mask per sequence.",
    )


class TransformerLayersConfig(Section):
    """Options of Transformer encoders and decoders; their width is ``model.embedding``."""

    layers: Positive = Field(default=6, description="Number of layers of this side.")
    heads: Positive = Field(
        default=8, description="Number of attention heads; must divide the width."
    )
    feed_forward: Positive = Field(default=1024, description="Width of the feed-forward layer.")
    norm: Literal["pre", "post"] = Field(
        default="pre",
        description="Layer normalization before each sub-layer, or after it (Vaswani 2017).",
    )
    positions: Literal["sinusoidal", "learned", "rotary"] = Field(
        default="sinusoidal", description="Position encoding."
    )
    max_positions: Positive = Field(
        default=1024, description="Number of learned positions, for positions: learned."
    )
    activation: Literal["relu", "gelu", "swiglu"] = Field(
        default="relu", description="Activation of the feed-forward layer."
    )
    attention_dropout: Rate = Field(
        default=0.0, description="Dropout rate of the attention weights."
    )
    activation_dropout: Rate = Field(
        default=0.0, description="Dropout rate inside the feed-forward layer."
    )


class RecurrentEncoderConfig(RecurrentLayersConfig):
    """Recurrent layers (Bahdanau 2015, Luong 2015)."""

    type: Literal["recurrent"] = Field(default="recurrent", description="Encoder type.")
    bidirectional: bool = Field(
        default=True,
        description="Read the source in both directions, which doubles the output width.",
    )
    reverse: bool = Field(
        default=False, description="Read the source from its end (Sutskever 2014)."
    )


class TransformerEncoderConfig(TransformerLayersConfig):
    """Self-attention layers (Vaswani 2017)."""

    type: Literal["transformer"] = Field(default="transformer", description="Encoder type.")


class EmbeddingEncoderConfig(Section):
    """Token embeddings without further layers."""

    type: Literal["embedding"] = Field(default="embedding", description="Encoder type.")


EncoderConfig = Annotated[
    Annotated[RecurrentEncoderConfig, Tag("recurrent")]
    | Annotated[TransformerEncoderConfig, Tag("transformer")]
    | Annotated[EmbeddingEncoderConfig, Tag("embedding")],
    by_type("recurrent"),
]


class _RecurrentDecoderConfig(RecurrentLayersConfig):
    initial_state: Literal["encoder", "zeros"] = Field(
        default="encoder",
        description="encoder: initialize the decoder with the final states of the encoder, or with "
        "the mean of its outputs; zeros: attention is the only connection to the source.",
    )
    pointer_generator: bool = Field(
        default=False,
        description="Copy source tokens in addition to generating tokens (See 2017); needs "
        "tokenizer.shared.",
    )


class LuongDecoderConfig(_RecurrentDecoderConfig):
    """Attention after the recurrent layers (Luong 2015)."""

    type: Literal["luong"] = Field(default="luong", description="Decoder type.")
    input_feeding: bool = Field(
        default=True, description="Feed the attentional state into the next step."
    )


class BahdanauDecoderConfig(_RecurrentDecoderConfig):
    """Attention before the recurrent layers (Bahdanau 2015)."""

    type: Literal["bahdanau"] = Field(default="bahdanau", description="Decoder type.")
    readout: Literal["maxout", "tanh"] = Field(
        default="maxout", description="Layer before the softmax."
    )


class TransformerDecoderConfig(TransformerLayersConfig):
    """Self-attention and cross-attention in every layer (Vaswani 2017)."""

    type: Literal["transformer"] = Field(default="transformer", description="Decoder type.")


DecoderConfig = Annotated[
    Annotated[LuongDecoderConfig, Tag("luong")]
    | Annotated[BahdanauDecoderConfig, Tag("bahdanau")]
    | Annotated[TransformerDecoderConfig, Tag("transformer")],
    by_type("luong"),
]


class PretrainedEmbeddingsConfig(Section):
    """Word vectors in the text format of GloVe or word2vec, for the initial embeddings.

    A task adds the keys of its files; each of them is a path or null.
    """

    trainable: bool = Field(default=True, description="Train the embeddings further.")
    oov: Literal["random", "zero"] = Field(
        default="random",
        description="Embeddings of tokens that the file does not contain: random vectors of the "
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
