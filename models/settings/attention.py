"""The section ``model.attention``: a score and an alignment."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from regard.models.settings.base import (
    ByType,
    Fraction,
    PluginSection,
    Positive,
    Section,
    Share,
    Size,
    name_or_mapping,
    option,
    section_registry,
)

_COVERAGE: bool = option(
    False, "Add the attention of all previous steps to the hidden layer (See 2017, eq. 11)."
)
Layers = Annotated[int, Field(ge=1, le=8)]


class DotScoreConfig(Section):
    """q·k for equal widths (Luong 2015)."""

    type: Literal["dot"] = option("dot", "Score type.")


class ScaledDotScoreConfig(Section):
    """q·k / √width (Vaswani 2017)."""

    type: Literal["scaled_dot"] = option("scaled_dot", "Score type.")


class GeneralScoreConfig(Section):
    """q·Wk (Luong 2015)."""

    type: Literal["general"] = option("general", "Score type.")


class LowRankScoreConfig(Section):
    """Uq·Vk, general with a matrix of low rank (Kim 2017)."""

    type: Literal["low_rank"] = option("low_rank", "Score type.")
    rank: Size = option(64, "Rank of the matrix.")


class AdditiveScoreConfig(Section):
    """v·tanh(Wq + Uk) (Bahdanau 2015)."""

    type: Literal["additive"] = option("additive", "Score type.")
    units: Size | None = option(None, "Width of the hidden layers; null: that of the query.")
    layers: Layers = option(1, "Number of hidden layers (Pavlopoulos 2017).")
    coverage: bool = _COVERAGE


class ConcatScoreConfig(Section):
    """v·tanh(W[q; k]) (Luong 2015)."""

    type: Literal["concat"] = option("concat", "Score type.")
    units: Size | None = option(None, "Width of the hidden layers; null: that of the query.")
    layers: Layers = option(1, "Number of hidden layers (Pavlopoulos 2017).")
    coverage: bool = _COVERAGE


class CosineScoreConfig(Section):
    """Cosine of q and k times a learned temperature, for equal widths (Graves 2014)."""

    type: Literal["cosine"] = option("cosine", "Score type.")


class LocationScoreConfig(Section):
    """Wq, which depends on source positions and not on their content (Luong 2015)."""

    type: Literal["location"] = option("location", "Score type.")
    max_source: Positive = option(512, "Maximum number of source positions.")


_ContentScoreConfig = (
    DotScoreConfig
    | ScaledDotScoreConfig
    | GeneralScoreConfig
    | LowRankScoreConfig
    | AdditiveScoreConfig
    | ConcatScoreConfig
    | CosineScoreConfig
)
SCORES = section_registry("regard.scores", _ContentScoreConfig | LocationScoreConfig)


class OtherScoreConfig(PluginSection):
    """Stands for the scores of other packages."""

    registry = SCORES


# Scores that depend on the content of the source.
ContentScoreConfig = _ContentScoreConfig | OtherScoreConfig
ScoreConfig = Annotated[
    ContentScoreConfig | LocationScoreConfig,
    ByType("general"),
    name_or_mapping,
]


class SoftAlignmentConfig(Section):
    """Softmax: all source positions get weight."""

    type: Literal["soft"] = option("soft", "Alignment type.")


class HardAlignmentConfig(Section):
    """One source position gets all weight (Xu 2015)."""

    type: Literal["hard"] = option("hard", "Alignment type.")
    training: Literal["reinforce", "straight_through"] = option(
        "reinforce", "Gradient estimator: REINFORCE, or the gradient of soft attention."
    )
    expectation: Share = option(0.5, "Share of rows trained with soft weights.")
    inference: Literal["argmax", "sample"] = option(
        "argmax", "Position in inference: the best one, or a reproducible sample."
    )


class SparsemaxAlignmentConfig(Section):
    """Sparsemax: low scores get a weight of exactly 0 (Martins 2016)."""

    type: Literal["sparsemax"] = option("sparsemax", "Alignment type.")


class TopKAlignmentConfig(Section):
    """Softmax over the k highest scores."""

    type: Literal["top_k"] = option("top_k", "Alignment type.")
    k: Positive = option(8, "Number of source positions with weight.")


class ThresholdedAlignmentConfig(Section):
    """Softmax in which weights under a threshold become 0, and the rest is renormalised."""

    type: Literal["thresholded"] = option("thresholded", "Alignment type.")
    threshold: Fraction = option(0.05, "Smallest weight that is not set to 0.")


class LocalMAlignmentConfig(Section):
    """A window around the position of the step (Luong 2015, local-m)."""

    type: Literal["local_m"] = option("local_m", "Alignment type.")
    window: Positive = option(10, "Number of positions on each side of the center.")


class LocalPAlignmentConfig(Section):
    """A window around a predicted position, weighted by a Gaussian (Luong 2015, local-p)."""

    type: Literal["local_p"] = option("local_p", "Alignment type.")
    window: Positive = option(10, "Number of positions on each side of the center.")


_AlignmentConfig = (
    SoftAlignmentConfig
    | HardAlignmentConfig
    | SparsemaxAlignmentConfig
    | TopKAlignmentConfig
    | ThresholdedAlignmentConfig
    | LocalMAlignmentConfig
    | LocalPAlignmentConfig
)
ALIGNMENTS = section_registry("regard.alignments", _AlignmentConfig)


class OtherAlignmentConfig(PluginSection):
    """Stands for the alignments of other packages."""

    registry = ALIGNMENTS


AlignmentConfig = Annotated[
    _AlignmentConfig | OtherAlignmentConfig, ByType("soft"), name_or_mapping
]


class AttentionConfig(Section):
    """A score, an alignment, and what they weigh."""

    score: ScoreConfig = option(
        GeneralScoreConfig(),
        "Score of a query and a key: a name, or a mapping with type. Default: general; additive "
        "for bahdanau, scaled_dot for transformer.",
    )
    alignment: AlignmentConfig = option(
        SoftAlignmentConfig(), "How scores become weights: a name, or a mapping with type."
    )
    values: Literal["shared", "split"] = option(
        "shared",
        "shared: the source vectors are keys and values; split: their first halves are keys, "
        "their second halves values (Daniluk 2017, Mino 2017).",
    )


class DecoderAttentionConfig(AttentionConfig):
    """A score and an alignment, of one or several heads."""

    heads: Size = option(
        1,
        "Number of heads of a recurrent decoder; must divide the width of the encoder. A "
        "transformer decoder has its own key heads.",
    )

    def to_kwargs(self) -> dict[str, Any]:
        """Return the fields without a default ``heads``, which only a recurrent decoder takes."""
        options = super().to_kwargs()
        return {name: x for name, x in options.items() if name != "heads" or self.heads > 1}


# The default score of each decoder is that of its paper.
_SCORES = {"luong": "general", "bahdanau": "additive", "transformer": "scaled_dot"}


def add_default_score(value: Any, decoder_type: str = "luong") -> Any:
    """Return a section ``model`` with the default score of its decoder, unless it has one.

    Args:
        value: The section.
        decoder_type: The type of the decoder if the section has none.
    """
    if not isinstance(value, dict) or not isinstance(value.get("attention", {}), dict):
        return value
    decoder = value.get("decoder", {"type": decoder_type})
    kind = decoder.get("type", "luong") if isinstance(decoder, dict) else "luong"
    attention = {"score": _SCORES.get(str(kind), "general"), **value.get("attention", {})}
    return {**value, "attention": attention}
