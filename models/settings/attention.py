"""The section ``model.attention``: a score and an alignment."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from regard.models.settings.base import Positive, Section, Share, by_type, name_or_mapping


class DotScoreConfig(Section):
    """q·k for equal widths (Luong 2015)."""

    type: Literal["dot"] = Field(default="dot", description="Score type.")


class ScaledDotScoreConfig(Section):
    """q·k / √width (Vaswani 2017)."""

    type: Literal["scaled_dot"] = Field(default="scaled_dot", description="Score type.")


class GeneralScoreConfig(Section):
    """q·Wk (Luong 2015)."""

    type: Literal["general"] = Field(default="general", description="Score type.")


class AdditiveScoreConfig(Section):
    """v·tanh(Wq + Uk) (Bahdanau 2015)."""

    type: Literal["additive"] = Field(default="additive", description="Score type.")
    units: Positive | None = Field(
        default=None, description="Width of the hidden layer; null: the width of the query."
    )


class ConcatScoreConfig(Section):
    """v·tanh(W[q; k]) (Luong 2015)."""

    type: Literal["concat"] = Field(default="concat", description="Score type.")
    units: Positive | None = Field(
        default=None, description="Width of the hidden layer; null: the width of the query."
    )


class CosineScoreConfig(Section):
    """Cosine of q and k times a learned temperature, for equal widths (Graves 2014)."""

    type: Literal["cosine"] = Field(default="cosine", description="Score type.")


class LocationScoreConfig(Section):
    """Wq, which depends on source positions and not on their content (Luong 2015)."""

    type: Literal["location"] = Field(default="location", description="Score type.")
    max_source: Positive = Field(default=512, description="Maximum number of source positions.")


# Scores that depend on the content of the source.
ContentScoreConfig = (
    Annotated[DotScoreConfig, Tag("dot")]
    | Annotated[ScaledDotScoreConfig, Tag("scaled_dot")]
    | Annotated[GeneralScoreConfig, Tag("general")]
    | Annotated[AdditiveScoreConfig, Tag("additive")]
    | Annotated[ConcatScoreConfig, Tag("concat")]
    | Annotated[CosineScoreConfig, Tag("cosine")]
)
ScoreConfig = Annotated[
    ContentScoreConfig | Annotated[LocationScoreConfig, Tag("location")],
    by_type("general"),
    name_or_mapping,
]


class SoftAlignmentConfig(Section):
    """Softmax: all source positions get weight."""

    type: Literal["soft"] = Field(default="soft", description="Alignment type.")


class HardAlignmentConfig(Section):
    """One source position gets all weight (Xu 2015)."""

    type: Literal["hard"] = Field(default="hard", description="Alignment type.")
    training: Literal["reinforce", "straight_through"] = Field(
        default="reinforce",
        description="Gradient estimator: REINFORCE, or the gradient of soft attention.",
    )
    expectation: Share = Field(default=0.5, description="Share of rows trained with soft weights.")


class SparsemaxAlignmentConfig(Section):
    """Sparsemax: low scores get a weight of exactly 0 (Martins 2016)."""

    type: Literal["sparsemax"] = Field(default="sparsemax", description="Alignment type.")


class TopKAlignmentConfig(Section):
    """Softmax over the k highest scores."""

    type: Literal["top_k"] = Field(default="top_k", description="Alignment type.")
    k: Positive = Field(default=8, description="Number of source positions with weight.")


class LocalMAlignmentConfig(Section):
    """A window around the position of the step (Luong 2015, local-m)."""

    type: Literal["local_m"] = Field(default="local_m", description="Alignment type.")
    window: Positive = Field(
        default=10, description="Number of positions on each side of the center."
    )


class LocalPAlignmentConfig(Section):
    """A window around a predicted position, weighted by a Gaussian (Luong 2015, local-p)."""

    type: Literal["local_p"] = Field(default="local_p", description="Alignment type.")
    window: Positive = Field(
        default=10, description="Number of positions on each side of the center."
    )


AlignmentConfig = Annotated[
    Annotated[SoftAlignmentConfig, Tag("soft")]
    | Annotated[HardAlignmentConfig, Tag("hard")]
    | Annotated[SparsemaxAlignmentConfig, Tag("sparsemax")]
    | Annotated[TopKAlignmentConfig, Tag("top_k")]
    | Annotated[LocalMAlignmentConfig, Tag("local_m")]
    | Annotated[LocalPAlignmentConfig, Tag("local_p")],
    by_type("soft"),
    name_or_mapping,
]


class AttentionConfig(Section):
    """Attention of the decoder to the source."""

    score: ScoreConfig = Field(
        default=GeneralScoreConfig(),
        description="Score of a query and a key: a name, or a mapping with type. Default: general "
        "for luong, additive for bahdanau, scaled_dot for transformer.",
    )
    alignment: AlignmentConfig = Field(
        default=SoftAlignmentConfig(),
        description="How scores become weights: a name, or a mapping with type.",
    )


# The default score of each decoder is that of its paper.
_SCORES = {"luong": "general", "bahdanau": "additive", "transformer": "scaled_dot"}


def add_default_score(value: Any) -> Any:
    """Return a section ``model`` with the default score of its decoder, unless it has one."""
    if not isinstance(value, dict) or not isinstance(value.get("attention", {}), dict):
        return value
    decoder = value.get("decoder")
    kind = decoder.get("type", "luong") if isinstance(decoder, dict) else "luong"
    attention = {"score": _SCORES.get(str(kind), "general"), **value.get("attention", {})}
    return {**value, "attention": attention}
