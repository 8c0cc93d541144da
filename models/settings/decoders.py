"""The section ``model.decoder`` of models that write text."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from models.settings.base import by_type
from models.settings.layers import Recurrent, Transformer


class _Writing(Recurrent):
    """What the recurrent decoders have beside their layers."""

    start: Literal["summary", "zeros"] = Field(
        default="summary",
        description="What the first states are made of: the encoder's last states, or the mean of "
        "what can be looked at; or nothing, so that all is known from looking.",
    )
    pointer_generator: bool = Field(
        default=False,
        description="Whether pieces of the source are copied beside those that are written (See "
        "2017); needs tokenizer.shared.",
    )


class LuongDecoder(_Writing):
    """Recurrent layers, then attention (Luong 2015)."""

    type: Literal["luong"] = Field(default="luong", description="The kind of decoder.")
    input_feeding: bool = Field(
        default=True, description="Whether the attentional state is fed into the next step."
    )


class BahdanauDecoder(_Writing):
    """Attention, then recurrent layers (Bahdanau 2015)."""

    type: Literal["bahdanau"] = Field(default="bahdanau", description="The kind of decoder.")
    readout: Literal["maxout", "tanh"] = Field(
        default="maxout", description="The layer before the softmax."
    )


class TransformerDecoder(Transformer):
    """Self-attention and attention to the source in every layer (Vaswani 2017)."""

    type: Literal["transformer"] = Field(default="transformer", description="The kind of decoder.")


Decoder = Annotated[
    Annotated[LuongDecoder, Tag("luong")]
    | Annotated[BahdanauDecoder, Tag("bahdanau")]
    | Annotated[TransformerDecoder, Tag("transformer")],
    by_type("luong"),
]
