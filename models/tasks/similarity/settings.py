"""The section ``model`` of similarity, and its checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from regard.models.settings import checks
from regard.models.settings.attention import (
    AlignmentConfig,
    GeneralScoreConfig,
    HardAlignmentConfig,
    ScoreConfig,
    SoftAlignmentConfig,
)
from regard.models.settings.base import (
    Count,
    Positive,
    Problem,
    Rate,
    Section,
    by_type,
    name_or_mapping,
)
from regard.models.settings.networks import (
    EncoderConfig,
    PretrainedEmbeddingsConfig,
    RecurrentEncoderConfig,
)
from regard.models.tasks.description import Feature

FEATURES = (
    Feature("first", "text"),
    Feature("second", "text"),
    Feature("score", "number", role="reference"),
)


class ScaleConfig(Section):
    """The range of the scores in the data."""

    low: float = Field(default=0.0, description="Score of unrelated sentences.")
    high: float = Field(default=5.0, description="Score of equivalent sentences.")


class SentenceEmbeddingsConfig(PretrainedEmbeddingsConfig):
    """Word vectors in the text format of GloVe or word2vec, for the initial embeddings."""

    file: str = Field(description="File, .txt or .gz.", examples=["glove.6B.300d.txt"])


class MeanPoolingConfig(Section):
    """Mean of the states."""

    type: Literal["mean"] = Field(default="mean", description="Pooling type.")


class MaxPoolingConfig(Section):
    """Maximum of each dimension (Conneau 2017)."""

    type: Literal["max"] = Field(default="max", description="Pooling type.")


class MeanMaxPoolingConfig(Section):
    """Mean and maximum, concatenated (Chen 2017)."""

    type: Literal["mean_max"] = Field(default="mean_max", description="Pooling type.")


class GatePoolingConfig(Section):
    """Mean of gated states (bottom-up attention)."""

    type: Literal["gate"] = Field(default="gate", description="Pooling type.")


class SelfAttentionPoolingConfig(Section):
    """Self-attentive pooling with several hops (bottom-up attention, Lin 2017)."""

    type: Literal["self_attention"] = Field(default="self_attention", description="Pooling type.")
    units: Positive = Field(default=64, description="Width of the hidden layer.")
    hops: Positive = Field(default=2, description="Number of hops.")
    penalty: Annotated[float, Field(ge=0.0)] = Field(
        default=0.0, description="Weight of the penalty on similar hops."
    )


class TopDownPoolingConfig(Section):
    """Attention from the other sentence (top-down attention, Tan 2016)."""

    type: Literal["top_down"] = Field(default="top_down", description="Pooling type.")
    score: ScoreConfig = Field(
        default=GeneralScoreConfig(), description="Score of a state and the other sentence."
    )


PoolingConfig = Annotated[
    Annotated[MeanPoolingConfig, Tag("mean")]
    | Annotated[MaxPoolingConfig, Tag("max")]
    | Annotated[MeanMaxPoolingConfig, Tag("mean_max")]
    | Annotated[GatePoolingConfig, Tag("gate")]
    | Annotated[SelfAttentionPoolingConfig, Tag("self_attention")]
    | Annotated[TopDownPoolingConfig, Tag("top_down")],
    by_type("max"),
    name_or_mapping,
]


class CrossAttentionScoreConfig(Section):
    """Score and alignment of the cross-attention."""

    score: ScoreConfig = Field(
        default=GeneralScoreConfig(),
        description="Score of two tokens: a name, or a mapping with type.",
    )
    alignment: AlignmentConfig = Field(
        default=SoftAlignmentConfig(),
        description="How scores become weights: a name, or a mapping with type.",
    )


class CrossAttentionConfig(Section):
    """Attention of each sentence to the other, before pooling (Chen 2017)."""

    units: Positive = Field(default=128, description="Width of the output.")
    attention: CrossAttentionScoreConfig = Field(
        default=CrossAttentionScoreConfig(), description="Score and alignment."
    )


class SimilarityModelConfig(Section):
    """The network: one encoder for both sentences, pooling, and a comparison."""

    scale: ScaleConfig = Field(
        default=ScaleConfig(), description="Range of the scores in the data."
    )
    embedding: Positive = Field(
        default=100, description="Width of the token embeddings and of Transformer layers."
    )
    dropout: Rate = Field(default=0.3, description="Dropout rate.")
    oov_buckets: Count = Field(
        default=1000,
        description="Number of embeddings for unknown words, selected by hash, so that an unknown "
        "word has the same embedding in both sentences; 0: one embedding for all.",
    )
    max_length: Positive = Field(
        default=128, description="Maximum number of tokens of a sentence in the served model."
    )
    pretrained: SentenceEmbeddingsConfig | None = Field(
        default=None, description="Pretrained word vectors; null: random initialization."
    )
    encoder: EncoderConfig = Field(
        default=RecurrentEncoderConfig(units=128), description="Encoder of a sentence."
    )
    pooling: PoolingConfig = Field(
        default=MaxPoolingConfig(),
        description="How the states become one vector: a name, or a mapping with type.",
    )
    cross: CrossAttentionConfig | None = Field(
        default=None,
        description="Cross-attention between the sentences; null: none.",
    )
    comparison: Literal["features", "cosine"] = Field(
        default="features",
        description="features: a small network on differences and products (Tai 2015); cosine: "
        "the cosine of the vectors.",
    )
    hidden_units: Positive = Field(
        default=64, description="Width of the small network of comparison: features."
    )


class SimilarityPreprocessing(Section):
    """The settings that the preprocessing depends on."""

    oov_buckets: Count
    scale: ScaleConfig


def limit_features(model: SimilarityModelConfig) -> tuple[Feature, ...]:
    """Return the features with the range of the score."""
    first, second, score = FEATURES
    return first, second, replace(score, low=model.scale.low, high=model.scale.high)


def validate(config: Any) -> Iterator[Problem]:
    """Yield the settings of a configuration that cannot work together."""
    scale = config.model.scale
    if scale.low >= scale.high:
        message = f"must be more than low: {scale.low:g}; {scale.high:g} was given"
        yield Problem(("model", "scale", "high"), message)
    if not config.tokenizer.shared:
        message = "both sentences share one encoder and need one tokenizer; use true"
        yield Problem(("tokenizer", "shared"), message)
    cross = config.model.cross
    if cross is not None:
        alignment = cross.attention.alignment
        if isinstance(alignment, HardAlignmentConfig) and alignment.training == "reinforce":
            message = "reinforce needs a decoder; use training: straight_through"
            yield Problem(("model", "cross", "attention", "alignment"), message)
    if config.training.label_smoothing:
        message = "does not apply to scores; use 0"
        yield Problem(("training", "label_smoothing"), message)
    yield from checks.check_no_attention_training(config)
    yield from checks.check_transformers(config)
    yield from checks.check_xla(config)
