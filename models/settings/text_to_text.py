"""The section ``model`` of tasks that read a text and write one, and what cannot work with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, model_validator

from models.settings import checks
from models.settings.attention import Attention, with_own_score
from models.settings.base import Positive, Problem, Section
from models.settings.decoders import Decoder, LuongDecoder
from models.settings.encoders import Encoder, RecurrentEncoder
from models.settings.layers import Rate
from models.settings.pretrained import Pretrained


class WordVectors(Pretrained):
    """Word vectors in GloVe's or word2vec's text format to start the embeddings from."""

    source: str | None = Field(
        default=None, description="File for the source's pieces, .txt or .gz; null: random ones."
    )
    target: str | None = Field(
        default=None, description="File for the target's pieces, .txt or .gz; null: random ones."
    )


class Model(Section):
    """The network: an encoder, a decoder, and attention between them."""

    embedding: Positive = Field(
        default=256, description="Width of the piece embeddings, and of a Transformer's layers."
    )
    dropout: Rate = Field(default=0.2, description="Share of activations dropped while training.")
    tie_embeddings: Literal["none", "output", "all"] = Field(
        default="none",
        description="One matrix for the target's embeddings and the softmax (output), or for the "
        "source's too (all; needs tokenizer.shared).",
    )
    pretrained: WordVectors | None = Field(
        default=None, description="Word vectors to start from; null: random ones."
    )
    encoder: Encoder = Field(default=RecurrentEncoder(), description="Reads the source.")
    decoder: Decoder = Field(default=LuongDecoder(), description="Writes the target.")
    attention: Attention | None = Field(
        default=Attention(),
        description="Where the decoder looks; null: nowhere, it gets the encoder's last state.",
    )

    _own_score = model_validator(mode="before")(with_own_score)


def problems(config: Any) -> Iterator[Problem]:
    """Yields what of a configuration cannot work together, at the key to be changed."""
    yield from checks.transformer_problems(config)
    yield from checks.attention_problems(config, checks.memory_width(config.model))
    yield from checks.tying_problems(config)
    yield from checks.copying_problems(config)
    yield from checks.penalty_problems(config)
    yield from _word_vectors(config.model)
    yield from checks.search_problems(config)
    yield from checks.xla_problems(config)


def _word_vectors(model: Model) -> Iterator[Problem]:
    pretrained = model.pretrained
    if pretrained is None:
        return
    if not pretrained.files():
        yield Problem(("model", "pretrained"), "names no file; give source, target or both")
    if model.tie_embeddings == "all" and pretrained.source and pretrained.target:
        message = "with tie_embeddings: all there is one matrix; give source or target, not both"
        yield Problem(("model", "pretrained", "target"), message)
