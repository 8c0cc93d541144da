"""The sections ``tokenizer``, ``model`` and ``search``: what defines the answers of the model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from pipeline.config.base import Count, Listed, Positive, Section, by_type


class Tokenizer(Section):
    """How text becomes pieces: SentencePiece, trained on the train split."""

    type: Literal["unigram", "bpe", "char", "word"] = Field(
        default="unigram", description="How SentencePiece finds the pieces."
    )
    vocab_size: Annotated[int, Field(ge=5)] = Field(
        default=8000, description="Pieces of each tokenizer, the four special ones included."
    )
    shared: bool = Field(
        default=False, description="Whether source and target share one tokenizer."
    )
    character_coverage: Annotated[float, Field(ge=0.9, le=1.0)] = Field(
        default=1.0,
        description="Share of the characters that get a piece; the rest is unknown. 0.9995 for "
        "languages with thousands of characters.",
    )
    vocab_limit: Literal["hard", "soft"] = Field(
        default="hard",
        description="Where the corpus does not allow so many pieces: refuse, or take fewer.",
    )
    sample: Positive = Field(
        default=1000000,
        description="Sentences to train on at most; of more, a hashed sample is taken.",
    )
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] = Field(
        default="nmt_nfkc",
        description="Unicode normalization of the text before it is cut; _cf also folds case.",
    )
    special_pieces: Listed[Annotated[str, Field(min_length=1)]] = Field(
        default=(), description="Strings that always are one piece, such as <date>."
    )
    byte_fallback: bool = Field(
        default=False,
        description="Whether unknown characters are cut into bytes (256 more pieces) and so "
        "survive.",
    )


class RecurrentEncoder(Section):
    """A stack of recurrent layers."""

    type: Literal["recurrent"] = Field(default="recurrent", description="The kind of encoder.")
    cell: Literal["lstm"] = Field(default="lstm", description="The recurrent cell.")
    units: Positive = Field(default=256, description="Width of each layer, in each direction.")
    layers: Positive = Field(default=1, description="Layers, one upon the other.")
    bidirectional: bool = Field(
        default=True,
        description="Whether every layer also reads backwards; doubles its output width.",
    )


class RecurrentDecoder(Section):
    """A stack of recurrent layers that attends to the encoder's output."""

    type: Literal["recurrent"] = Field(default="recurrent", description="The kind of decoder.")
    cell: Literal["lstm"] = Field(default="lstm", description="The recurrent cell.")
    path: Literal["luong"] = Field(
        default="luong", description="Where attention comes in: luong, after the recurrent layers."
    )
    units: Positive = Field(default=256, description="Width of each layer.")
    layers: Positive = Field(default=1, description="Layers, one upon the other.")
    input_feeding: bool = Field(
        default=True, description="Whether the attentional state is fed into the next step."
    )


class Attention(Section):
    """How the decoder looks at the source: score and alignment."""

    score: Literal["general", "dot"] = Field(
        default="general", description="How well a query matches a key."
    )
    alignment: Literal["soft"] = Field(
        default="soft", description="How scores become weights: soft is the softmax."
    )


class Model(Section):
    """The network."""

    embedding: Positive = Field(default=256, description="Width of the piece embeddings.")
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.2, description="Share of activations dropped while training."
    )
    encoder: RecurrentEncoder = Field(default=RecurrentEncoder(), description="Reads the source.")
    decoder: RecurrentDecoder = Field(default=RecurrentDecoder(), description="Writes the target.")
    attention: Attention = Field(default=Attention(), description="Where the decoder looks.")


class _Search(Section):
    """What every search has: limits on lengths."""

    max_length_factor: Annotated[float, Field(ge=0.0)] = Field(
        default=2.0, description="A hypothesis has at most this times the pieces of its source ..."
    )
    max_length_offset: Count = Field(default=10, description="... plus so many pieces.")
    max_source_length: Positive = Field(
        default=256, description="Pieces of a source that are read; the rest is cut off."
    )


class GreedySearch(_Search):
    """Takes the most probable piece at every step."""

    type: Literal["greedy"] = Field(default="greedy", description="The search.")


class BeamSearch(_Search):
    """Keeps the best partial hypotheses at every step."""

    type: Literal["beam"] = Field(default="beam", description="The search.")
    beam_size: Positive = Field(default=5, description="Hypotheses kept at every step.")
    length_penalty: Annotated[float, Field(ge=0.0)] = Field(
        default=0.6, description="GNMT's alpha: 0 prefers short hypotheses, 1 longer ones."
    )


Search = Annotated[
    Annotated[GreedySearch, Tag("greedy")] | Annotated[BeamSearch, Tag("beam")],
    by_type("beam"),
]
