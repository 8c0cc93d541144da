"""The section ``model`` of similarity, and its checks."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from regard.core.bounds import Count, Positive, Rate, Size
from regard.core.features import Feature
from regard.core.kinds import NUMBER, TEXT
from regard.models.settings import checks, networks
from regard.models.settings.attention import AttentionConfig
from regard.models.settings.base import Problem, Section
from regard.models.settings.networks import PoolingConfig, PoolingSection
from regard.models.tasks.description import Description, Parts

FEATURES = (
    Feature("first", TEXT),
    Feature("second", TEXT),
    Feature("score", NUMBER, role="reference"),
)
# The names of the sentences that a model reads.
SIDES = tuple(feature.name for feature in FEATURES if feature.role == "input")


class ScaleConfig(Section):
    """The range of the scores in the data.

    Attributes:
        low: Score of unrelated sentences.
        high: Score of equivalent sentences.
    """

    low: float = 0.0
    high: float = 5.0

    def own_problems(self) -> Iterator[Problem]:
        """Yield an empty range."""
        if self.low >= self.high:
            message = f"must be more than low: {self.low:g}; {self.high:g} was given"
            yield Problem(("high",), message)

    def to_scale(self, similarities: Any) -> Any:
        """Return similarities from 0 to 1, an array or a tensor, in this range."""
        return self.low + (self.high - self.low) * similarities


class CrossAttentionConfig(Section):
    """Attention of each sentence to the other, before pooling (Chen 2017).

    Attributes:
        units: Width of the output.
        attention: Score and alignment.
    """

    units: Size = 128
    attention: AttentionConfig = AttentionConfig()


class SimilarityModelConfig(Section):
    """The network: one encoder for both sentences, pooling, and a comparison.

    Attributes:
        scale: Range of the scores in the data.
        embedding: Width of the token embeddings and of Transformer layers.
        dropout: Dropout rate.
        oov_buckets: Number of embeddings for unknown words, selected by hash, so that an unknown
            word has the same embedding in both sentences; 0: one embedding for all.
        max_length: Maximum tokens of a sentence in the served model.
        pretrained: Pretrained word vectors; null: random initialization.
        encoder: Encoder of a sentence, or a list of encoders.
        pooling: How the states become one vector: a name, or a mapping with type.
        cross: Cross-attention of sentences; null: none.
        comparison: features: a small network on differences and products (Tai 2015); cosine: the
            cosine of the vectors.
        hidden_units: Width of the small network of comparison: features.
    """

    scale: ScaleConfig = ScaleConfig()
    embedding: Size = 100
    dropout: Rate = 0.3
    oov_buckets: Count = 1000
    max_length: Positive = 128
    pretrained: networks.TokenEmbeddingsConfig | None = None
    encoder: networks.EncodersConfig = networks.RecurrentEncoderConfig(units=128)
    pooling: PoolingConfig = PoolingSection.create("max")
    cross: CrossAttentionConfig | None = None
    comparison: Literal["features", "cosine"] = "features"
    hidden_units: Size = 64


class SimilarityPreprocessingConfig(Section):
    """The settings that the preprocessing depends on."""

    oov_buckets: Count
    scale: ScaleConfig


def limit_features(model: SimilarityModelConfig) -> tuple[Feature, ...]:
    """Return the features with the range of the score."""
    first, second, score = FEATURES
    scale = model.scale
    limited = replace(score, low=scale.low, high=scale.high, limits_key="model.scale")
    return first, second, limited


def validate(config: Any) -> Iterator[Problem]:
    """Yield the settings of a configuration that cannot work together."""
    if not config.tokenizer.shared:
        message = "both sentences share one encoder and need one tokenizer; use true"
        yield Problem(("tokenizer", "shared"), message)
    cross = config.model.cross
    if cross is not None:
        if getattr(cross.attention.alignment, "is_reinforced", False):
            message = "reinforce needs a decoder; use training: straight_through"
            yield Problem(("model", "cross", "attention", "alignment"), message)
        path = ("model", "cross", "attention", "score")
        yield from checks.check_no_coverage(cross.attention.score, path)
        if cross.attention.values == "split":
            message = "cross-attention compares states with the values; use shared"
            yield Problem(("model", "cross", "attention", "values"), message)
    score = getattr(config.model.pooling, "score", None)
    if score is not None:
        yield from checks.check_no_coverage(score, ("model", "pooling", "score"))
    yield from checks.check_layers(config)
    yield from checks.check_xla(config)


DESCRIPTION = Description(
    name="similarity",
    summary="two sentences to a similarity score",
    about="The model scores how similar two texts are.",
    parts=Parts(
        "regard.models.tasks.similarity",
        preprocessing="SentencePreprocessing",
        network="SimilarityNetwork",
        served="ServedSimilarity",
    ),
    output="similarity",
    other_outputs=(
        *("alignment", "cut"),
        *(f"{side}_{name}" for side in SIDES for name in ("length", "pieces", "weights")),
    ),
    features=FEATURES,
    model=SimilarityModelConfig,
    metrics=("pearson", "spearman", "mse"),
    defaults={
        "tokenizer": {"type": "word", "shared": True},
        "training": {"label_smoothing": 0.0},
        "evaluation": {"length_buckets": (10, 20, 30)},
    },
    validate=validate,
    limit_features=limit_features,
    preprocessing_section=SimilarityPreprocessingConfig,
)
