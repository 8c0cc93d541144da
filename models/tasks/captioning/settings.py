"""Captioning's section ``model``, and what cannot work with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, model_validator

from models.settings import checks
from models.settings.attention import (
    Attention,
    LocalMAlignment,
    LocalPAlignment,
    LocationScore,
    with_own_score,
)
from models.settings.base import Listed, Positive, Problem, Section
from models.settings.decoders import BahdanauDecoder, Decoder
from models.settings.layers import Rate


class Image(Section):
    """What images are made to before they are looked at."""

    height: Positive = Field(default=64, description="Rows, whatever the file's shape is.")
    width: Positive = Field(default=64, description="Columns, whatever the file's shape is.")


class ConvolutionalEncoder(Section):
    """Convolutions that give a grid of features (Xu 2015)."""

    type: Literal["convolutional"] = Field(
        default="convolutional", description="The kind of encoder."
    )
    channels: Listed[Positive] = Field(
        default=(32, 64, 128),
        description="Depth of each stage; a stage halves both sides of the image.",
    )
    units: Positive = Field(default=128, description="Depth of the grid that is looked at.")
    self_attention: bool = Field(
        default=False, description="Whether the cells of the grid look at each other (Zhang 2019)."
    )
    positions: Literal["none", "sinusoidal", "learned"] = Field(
        default="sinusoidal",
        description="How a cell knows its row and column, besides two numbers (Carion 2020).",
    )


class Model(Section):
    """The network: a grid of features of the image, a decoder, and attention between them."""

    image: Image = Field(
        default=Image(), description="What images are made to before they are looked at."
    )
    embedding: Positive = Field(
        default=128, description="Width of the piece embeddings, and of a Transformer's layers."
    )
    dropout: Rate = Field(default=0.2, description="Share of activations dropped while training.")
    tie_embeddings: Literal["none", "output"] = Field(
        default="none",
        description="One matrix for the caption's embeddings and the softmax (output), or two.",
    )
    encoder: ConvolutionalEncoder = Field(
        default=ConvolutionalEncoder(), description="Reads the image."
    )
    decoder: Decoder = Field(
        default=BahdanauDecoder(units=256, readout="tanh"), description="Writes the caption."
    )
    attention: Attention | None = Field(
        default=Attention(),
        description="Where the decoder looks; null: nowhere, it gets the mean of the grid.",
    )

    @model_validator(mode="before")
    @classmethod
    def _own_score(cls, value: Any) -> Any:
        """Fills in the score of the decoder's paper; a decoder that is not named is bahdanau's."""
        if isinstance(value, dict) and "decoder" not in value:
            named = with_own_score({**value, "decoder": {"type": "bahdanau"}})
            return {key: part for key, part in named.items() if key != "decoder"}
        return with_own_score(value)


def problems(config: Any) -> Iterator[Problem]:
    """Yields what of a configuration cannot work together, at the key to be changed."""
    model, search = config.model, config.search
    factor = 2 ** len(model.encoder.channels)
    for side in ("height", "width"):
        if getattr(model.image, side) % factor:
            message = f"{getattr(model.image, side)} is no multiple of {factor}, and each of the "
            message += f"{len(model.encoder.channels)} stages of model.encoder.channels halves it"
            yield Problem(("model", "image", side), message)
    if not model.encoder.channels:
        yield Problem(("model", "encoder", "channels"), "there must be a stage")
    if model.encoder.positions != "none" and model.encoder.units < 2:
        message = "a row and a column need at least 2; or set model.encoder.positions to none"
        yield Problem(("model", "encoder", "units"), message)
    yield from checks.transformer_problems(config)
    yield from checks.attention_problems(config, model.encoder.units)
    yield from checks.tying_problems(config)
    yield from checks.penalty_problems(config)
    yield from checks.search_problems(config)
    yield from checks.xla_problems(config)
    if model.attention is not None:
        if isinstance(model.attention.score, LocationScore):
            message = "an image has no positions in a row; use another score"
            yield Problem(("model", "attention", "score"), message)
        if isinstance(model.attention.alignment, LocalMAlignment | LocalPAlignment):
            message = f"{model.attention.alignment.type} has a window in a row, and an image has "
            yield Problem(("model", "attention", "alignment"), f"{message}none; use soft or hard")
    if getattr(model.decoder, "pointer_generator", False):
        message = "there is nothing to copy in an image; use false"
        yield Problem(("model", "decoder", "pointer_generator"), message)
    for name in ("max_source_length", "long_source"):
        field = type(search).model_fields[name]
        if getattr(search, name) != field.default:
            message = "an image has no pieces to count; leave it out"
            yield Problem(("search", name), message)
    if search.max_length_factor or search.min_length_factor:
        name = "max_length_factor" if search.max_length_factor else "min_length_factor"
        message = "an image has no pieces to count; use 0, and set max_length_offset"
        yield Problem(("search", name), message)
