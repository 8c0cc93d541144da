"""The section ``model.encoder`` of models that read text."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from models.settings.base import Section, by_type
from models.settings.layers import Recurrent, Transformer


class RecurrentEncoder(Recurrent):
    """A stack of recurrent layers (Bahdanau 2015, Luong 2015)."""

    type: Literal["recurrent"] = Field(default="recurrent", description="The kind of encoder.")
    bidirectional: bool = Field(
        default=True,
        description="Whether every layer also reads backwards; doubles its output width.",
    )
    reverse: bool = Field(
        default=False, description="Whether the source is read from its end (Sutskever 2014)."
    )


class TransformerEncoder(Transformer):
    """Self-attention layers (Vaswani 2017)."""

    type: Literal["transformer"] = Field(default="transformer", description="The kind of encoder.")


class VectorsEncoder(Section):
    """The embeddings themselves, each piece for itself."""

    type: Literal["vectors"] = Field(default="vectors", description="The kind of encoder.")


Encoder = Annotated[
    Annotated[RecurrentEncoder, Tag("recurrent")]
    | Annotated[TransformerEncoder, Tag("transformer")]
    | Annotated[VectorsEncoder, Tag("vectors")],
    by_type("recurrent"),
]
