"""What recurrent and Transformer layers can be told, whether they read or write."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from models.settings.base import Positive, Section

Rate = Annotated[float, Field(ge=0.0, lt=1.0)]


class Recurrent(Section):
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


class Transformer(Section):
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
