"""Similarity's section ``model``, and what cannot work with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from models.settings import checks
from models.settings.attention import (
    Alignment,
    GeneralScore,
    HardAlignment,
    Score,
    SoftAlignment,
)
from models.settings.base import Count, Positive, Problem, Section, by_type, name_or_mapping
from models.settings.encoders import Encoder, RecurrentEncoder
from models.settings.layers import Rate
from models.settings.pretrained import Pretrained
from models.tasks.features import Feature

FEATURES = (
    Feature("first", "text"),
    Feature("second", "text"),
    Feature("score", "number", role="reference"),
)


class Scale(Section):
    """What the data's scores mean."""

    low: float = Field(default=0.0, description="The score of sentences that have nothing common.")
    high: float = Field(default=5.0, description="The score of sentences that say the same.")


class WordVectors(Pretrained):
    """Word vectors in GloVe's or word2vec's text format to start the embeddings from."""

    file: str = Field(description="The file, .txt or .gz.", examples=["glove.6B.300d.txt"])


class MeanPooling(Section):
    """The mean of the states."""

    type: Literal["mean"] = Field(default="mean", description="The pooling.")


class MaxPooling(Section):
    """The greatest number of each dimension (Conneau 2017)."""

    type: Literal["max"] = Field(default="max", description="The pooling.")


class MeanMaxPooling(Section):
    """Both, one behind the other (Chen 2017)."""

    type: Literal["mean_max"] = Field(default="mean_max", description="The pooling.")


class GatePooling(Section):
    """The mean of the states, each through a gate: bottom-up."""

    type: Literal["gate"] = Field(default="gate", description="The pooling.")


class SelfAttentionPooling(Section):
    """Weighted sums, whose weights the sentence itself gives: bottom-up (Lin 2017)."""

    type: Literal["self_attention"] = Field(default="self_attention", description="The pooling.")
    units: Positive = Field(default=64, description="Width of the hidden layer.")
    hops: Positive = Field(default=2, description="Sums side by side.")
    penalty: Annotated[float, Field(ge=0.0)] = Field(
        default=0.0, description="Weight of the penalty on hops that look alike."
    )


class TopDownPooling(Section):
    """A weighted sum, whose weights the other sentence gives: top-down (Tan 2016)."""

    type: Literal["top_down"] = Field(default="top_down", description="The pooling.")
    score: Score = Field(
        default=GeneralScore(), description="How well a state matches the other sentence."
    )


Pooling = Annotated[
    Annotated[MeanPooling, Tag("mean")]
    | Annotated[MaxPooling, Tag("max")]
    | Annotated[MeanMaxPooling, Tag("mean_max")]
    | Annotated[GatePooling, Tag("gate")]
    | Annotated[SelfAttentionPooling, Tag("self_attention")]
    | Annotated[TopDownPooling, Tag("top_down")],
    by_type("max"),
    name_or_mapping,
]


class CrossLook(Section):
    """How the two sentences look at each other."""

    score: Score = Field(
        default=GeneralScore(), description="How well two pieces match, a name or a mapping."
    )
    alignment: Alignment = Field(
        default=SoftAlignment(), description="How scores become weights, a name or a mapping."
    )


class Cross(Section):
    """Each sentence looks at the other before it becomes a vector (Chen 2017)."""

    units: Positive = Field(default=128, description="Width of what comes out.")
    attention: CrossLook = Field(
        default=CrossLook(), description="How the two sentences look at each other."
    )


class Model(Section):
    """The network: one encoder for both sentences, a pooling, a comparison."""

    scale: Scale = Field(default=Scale(), description="What the data's scores mean.")
    embedding: Positive = Field(
        default=100, description="Width of the piece embeddings, and of a Transformer's layers."
    )
    dropout: Rate = Field(default=0.3, description="Share of activations dropped while training.")
    unknown: Count = Field(
        default=1000,
        description="Vectors for words that are not in the vocabulary, told apart by their hash, "
        "so that the same unknown word is known again in the other sentence; 0: one for all.",
    )
    max_length: Positive = Field(
        default=128, description="Pieces of a sentence that the served model reads at most."
    )
    pretrained: WordVectors | None = Field(
        default=None, description="Word vectors to start from; null: random ones."
    )
    encoder: Encoder = Field(default=RecurrentEncoder(units=128), description="Reads a sentence.")
    pooling: Pooling = Field(
        default=MaxPooling(), description="How its states become one vector, a name or a mapping."
    )
    cross: Cross | None = Field(
        default=None,
        description="Whether each sentence looks at the other before; null: it does not.",
    )
    comparison: Literal["features", "cosine"] = Field(
        default="features",
        description="A small network on differences and products (Tai 2015), or the cosine.",
    )
    hidden: Positive = Field(default=64, description="Width of the small network.")


def limited(model: Model) -> tuple[Feature, ...]:
    """The features, the score within its scale."""
    first, second, score = FEATURES
    return first, second, replace(score, low=model.scale.low, high=model.scale.high)


def problems(config: Any) -> Iterator[Problem]:
    """Yields what of a configuration cannot work together, at the key to be changed."""
    scale = config.model.scale
    if scale.low >= scale.high:
        message = f"{scale.high:g} is not more than low: {scale.low:g}"
        yield Problem(("model", "scale", "high"), message)
    if not config.tokenizer.shared:
        message = "both sentences go through one encoder and need one tokenizer; use true"
        yield Problem(("tokenizer", "shared"), message)
    cross = config.model.cross
    if cross is not None:
        alignment = cross.attention.alignment
        if isinstance(alignment, HardAlignment) and alignment.training == "reinforce":
            message = "nothing rewards where sentences look; use training: straight_through"
            yield Problem(("model", "cross", "attention", "alignment"), message)
    if config.training.label_smoothing:
        message = "a score is one number, with nothing beside it to be smoothed to; use 0"
        yield Problem(("training", "label_smoothing"), message)
    yield from checks.look_problems(config)
    yield from checks.transformer_problems(config)
    yield from checks.xla_problems(config)
