"""The section ``model``: the network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, Tag, model_validator

from pipeline.config.attention import Attention
from pipeline.config.base import Positive, Section, by_type

Rate = Annotated[float, Field(ge=0.0, lt=1.0)]


class _Recurrent(Section):
    """What recurrent layers have, whether they read or write."""

    cell: Literal["lstm", "gru"] = Field(default="lstm", description="The recurrent cell.")
    units: Positive = Field(default=256, description="Width of each layer, in each direction.")
    layers: Positive = Field(default=1, description="Layers, one upon the other.")
    residual: bool = Field(
        default=False, description="Whether a layer's input is added to its output, where it fits."
    )
    dropout_type: Literal["plain", "variational"] = Field(
        default="plain",
        description="New numbers are dropped at every step, or the same in all of a sentence.",
    )


class RecurrentEncoder(_Recurrent):
    """A stack of recurrent layers (Bahdanau 2015, Luong 2015)."""

    type: Literal["recurrent"] = Field(default="recurrent", description="The kind of encoder.")
    bidirectional: bool = Field(
        default=True,
        description="Whether every layer also reads backwards; doubles its output width.",
    )
    reverse: bool = Field(
        default=False, description="Whether the source is read from its end (Sutskever 2014)."
    )


class LuongDecoder(_Recurrent):
    """Recurrent layers, then attention (Luong 2015)."""

    type: Literal["luong"] = Field(default="luong", description="The kind of decoder.")
    input_feeding: bool = Field(
        default=True, description="Whether the attentional state is fed into the next step."
    )


class BahdanauDecoder(_Recurrent):
    """Attention, then recurrent layers (Bahdanau 2015)."""

    type: Literal["bahdanau"] = Field(default="bahdanau", description="The kind of decoder.")
    readout: Literal["maxout", "tanh"] = Field(
        default="maxout", description="The layer before the softmax."
    )


class _Transformer(Section):
    """What Transformer layers have; their width is ``model.embedding``."""

    layers: Positive = Field(
        default=6, description="Layers, one upon the other; each side has its own number."
    )
    heads: Positive = Field(default=8, description="Attentions side by side; divides the width.")
    feed_forward: Positive = Field(default=1024, description="Width inside the feed-forward part.")
    norm: Literal["pre", "post"] = Field(
        default="pre", description="Normalise before each part, or after it as Vaswani 2017."
    )
    positions: Literal["sinusoidal", "learned", "rotary"] = Field(
        default="sinusoidal", description="How a layer knows where a piece stands."
    )
    max_positions: Positive = Field(
        default=1024, description="Positions that there are vectors for, where they are learned."
    )
    activation: Literal["relu", "gelu", "swiglu"] = Field(
        default="relu", description="The function inside the feed-forward part."
    )
    attention_dropout: Rate = Field(
        default=0.0, description="Share of the attention weights dropped while training."
    )
    activation_dropout: Rate = Field(
        default=0.0, description="Share dropped inside the feed-forward part while training."
    )


class TransformerEncoder(_Transformer):
    """Self-attention layers (Vaswani 2017)."""

    type: Literal["transformer"] = Field(default="transformer", description="The kind of encoder.")


class TransformerDecoder(_Transformer):
    """Self-attention and attention to the source in every layer (Vaswani 2017)."""

    type: Literal["transformer"] = Field(default="transformer", description="The kind of decoder.")


Encoder = Annotated[
    Annotated[RecurrentEncoder, Tag("recurrent")]
    | Annotated[TransformerEncoder, Tag("transformer")],
    by_type("recurrent"),
]
Decoder = Annotated[
    Annotated[LuongDecoder, Tag("luong")]
    | Annotated[BahdanauDecoder, Tag("bahdanau")]
    | Annotated[TransformerDecoder, Tag("transformer")],
    by_type("luong"),
]

# The score that goes with a decoder where the file names none: its paper's.
_SCORES = {"luong": "general", "bahdanau": "additive", "transformer": "scaled_dot"}


class Pretrained(Section):
    """Word vectors in GloVe's or word2vec's text format to start the embeddings from."""

    source: str | None = Field(
        default=None, description="File for the source's pieces, .txt or .gz; null: random ones."
    )
    target: str | None = Field(
        default=None, description="File for the target's pieces, .txt or .gz; null: random ones."
    )
    trainable: bool = Field(
        default=True, description="Whether training goes on from there, or leaves them as they are."
    )

    def files(self) -> dict[str, str]:
        """The file of each side that has one."""
        sides = {"source": self.source, "target": self.target}
        return {side: path for side, path in sides.items() if path is not None}

    def resolved(self, base: Path) -> Pretrained:
        """A copy whose paths are absolute."""
        files = {
            side: os.path.normpath(base / os.path.expanduser(path))
            for side, path in self.files().items()
        }
        return self.model_copy(update=files)


class Model(Section):
    """The network."""

    embedding: Positive = Field(
        default=256, description="Width of the piece embeddings, and of a Transformer's layers."
    )
    dropout: Rate = Field(default=0.2, description="Share of activations dropped while training.")
    tie_embeddings: Literal["none", "output", "all"] = Field(
        default="none",
        description="One matrix for the target's embeddings and the softmax (output), or for the "
        "source's too (all; needs tokenizer.shared).",
    )
    pretrained: Pretrained | None = Field(
        default=None, description="Word vectors to start from; null: random ones."
    )
    encoder: Encoder = Field(default=RecurrentEncoder(), description="Reads the source.")
    decoder: Decoder = Field(default=LuongDecoder(), description="Writes the target.")
    attention: Attention | None = Field(
        default=Attention(),
        description="Where the decoder looks; null: nowhere, it gets the encoder's last state.",
    )

    @model_validator(mode="before")
    @classmethod
    def _own_score(cls, value: Any) -> Any:
        """Fills in the score of the decoder's paper where the file names none."""
        if not isinstance(value, dict) or not isinstance(value.get("attention", {}), dict):
            return value
        decoder = value.get("decoder")
        kind = decoder.get("type", "luong") if isinstance(decoder, dict) else "luong"
        attention = {"score": _SCORES.get(str(kind), "general"), **value.get("attention", {})}
        return {**value, "attention": attention}
