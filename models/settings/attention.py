"""The section ``model.attention``: a score and an alignment."""

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
    section_registry,
)


class _ScoreSection(Section):
    """A score.

    Attributes:
        type: Score type.
    """

    type: str


class DotScoreConfig(_ScoreSection):
    """q·k for equal widths (Luong 2015)."""

    type: Literal["dot"] = "dot"


class ScaledDotScoreConfig(_ScoreSection):
    """q·k / √width (Vaswani 2017)."""

    type: Literal["scaled_dot"] = "scaled_dot"


class GeneralScoreConfig(_ScoreSection):
    """q·Wk / √width (Luong 2015, without the scale)."""

    type: Literal["general"] = "general"


class LowRankScoreConfig(_ScoreSection):
    """Aq·Bk / √rank, general with a matrix of low rank (Kim 2017).

    Attributes:
        rank: Rank of the matrix.
    """

    type: Literal["low_rank"] = "low_rank"
    rank: Size = 64


class _PerceptronScoreSection(_ScoreSection):
    """A score with hidden layers.

    Attributes:
        units: Width of the hidden layers; null: that of the query.
        layers: Number of hidden layers (Pavlopoulos 2017).
        coverage: Add the attention of all previous steps to the hidden layer (See 2017, eq. 11).
    """

    units: Size | None = None
    layers: Annotated[int, Field(ge=1, le=8)] = 1
    coverage: bool = False


class AdditiveScoreConfig(_PerceptronScoreSection):
    """v·tanh(Wq + Uk) (Bahdanau 2015)."""

    type: Literal["additive"] = "additive"


class ConcatScoreConfig(_PerceptronScoreSection):
    """v·tanh(W[q; k]) (Luong 2015)."""

    type: Literal["concat"] = "concat"


class CosineScoreConfig(_ScoreSection):
    """Cosine of q and k times a learned temperature, for equal widths (Graves 2014)."""

    type: Literal["cosine"] = "cosine"


class LocationScoreConfig(_ScoreSection):
    """Wq, which depends on source positions and not on their content (Luong 2015).

    Attributes:
        max_source: Maximum number of source positions.
    """

    type: Literal["location"] = "location"
    max_source: Positive = 512


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
    ContentScoreConfig | LocationScoreConfig, ByType("general"), name_or_mapping
]


class _AlignmentSection(Section):
    """An alignment.

    Attributes:
        type: Alignment type.
    """

    type: str


class SoftAlignmentConfig(_AlignmentSection):
    """Softmax: all source positions get weight."""

    type: Literal["soft"] = "soft"


class HardAlignmentConfig(_AlignmentSection):
    """One source position gets all weight (Xu 2015).

    Attributes:
        training: Gradient estimator: REINFORCE, or the gradient of soft attention.
        expectation: Share of rows trained with soft weights.
        inference: Position in inference: the best one, or a reproducible sample.
    """

    type: Literal["hard"] = "hard"
    training: Literal["reinforce", "straight_through"] = "reinforce"
    expectation: Share = 0.5
    inference: Literal["argmax", "sample"] = "argmax"


class SparsemaxAlignmentConfig(_AlignmentSection):
    """Sparsemax: low scores get a weight of exactly 0 (Martins 2016)."""

    type: Literal["sparsemax"] = "sparsemax"


class TopKAlignmentConfig(_AlignmentSection):
    """Softmax over the k highest scores.

    Attributes:
        k: Number of source positions with weight.
    """

    type: Literal["top_k"] = "top_k"
    k: Positive = 8


class ThresholdedAlignmentConfig(_AlignmentSection):
    """Softmax in which weights under a threshold become 0, and the rest is renormalised.

    Attributes:
        threshold: Smallest weight that is not set to 0.
    """

    type: Literal["thresholded"] = "thresholded"
    threshold: Fraction = 0.05


class LocalMAlignmentConfig(_AlignmentSection):
    """A window around the position of the step (Luong 2015, local-m).

    Attributes:
        window: Number of positions on each side of the center.
    """

    type: Literal["local_m"] = "local_m"
    window: Positive = 10


class LocalPAlignmentConfig(_AlignmentSection):
    """A window around a predicted position, weighted by a Gaussian (Luong 2015, local-p).

    Attributes:
        window: Number of positions on each side of the center.
    """

    type: Literal["local_p"] = "local_p"
    window: Positive = 10


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
    """A score, an alignment, and what they weigh.

    Attributes:
        score: Score of a query and a key: a name, or a mapping with type. Default: general;
            additive for bahdanau, scaled_dot for transformer.
        alignment: How scores become weights: a name, or a mapping with type.
        values: shared: the source vectors are keys and values; split: their first halves are keys,
            their second halves values (Daniluk 2017, Mino 2017).
    """

    score: ScoreConfig = GeneralScoreConfig()
    alignment: AlignmentConfig = SoftAlignmentConfig()
    values: Literal["shared", "split"] = "shared"


class DecoderAttentionConfig(AttentionConfig):
    """A score and an alignment, of one or several heads.

    Attributes:
        heads: Number of heads of a recurrent decoder; must divide the width of the encoder. A
            transformer decoder has its own key heads.
    """

    heads: Size = 1

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
