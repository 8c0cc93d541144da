"""The section ``model.attention``: a score and an alignment, each a name or a mapping."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from models.settings.base import Positive, Section, Share, by_type, name_or_mapping


class DotScore(Section):
    """q . k; both of one width (Luong 2015)."""

    type: Literal["dot"] = Field(default="dot", description="The score.")


class ScaledDotScore(Section):
    """q . k by the root of the width (Vaswani 2017)."""

    type: Literal["scaled_dot"] = Field(default="scaled_dot", description="The score.")


class GeneralScore(Section):
    """q . W k (Luong 2015)."""

    type: Literal["general"] = Field(default="general", description="The score.")


class AdditiveScore(Section):
    """v . tanh(W q + U k), a perceptron (Bahdanau 2015)."""

    type: Literal["additive"] = Field(default="additive", description="The score.")
    units: Positive | None = Field(
        default=None, description="Width of the perceptron; null: that of the query."
    )


class ConcatScore(Section):
    """v . tanh(W [q; k]) (Luong 2015)."""

    type: Literal["concat"] = Field(default="concat", description="The score.")
    units: Positive | None = Field(
        default=None, description="Width of the hidden layer; null: that of the query."
    )


class CosineScore(Section):
    """The cosine of q and k times a learned temperature; both of one width (Graves 2014)."""

    type: Literal["cosine"] = Field(default="cosine", description="The score.")


class LocationScore(Section):
    """W q: where to look without looking (Luong 2015)."""

    type: Literal["location"] = Field(default="location", description="The score.")
    max_source: Positive = Field(
        default=512, description="Source positions that there are weights for."
    )


# Those that look at what they match.
Matching = (
    Annotated[DotScore, Tag("dot")]
    | Annotated[ScaledDotScore, Tag("scaled_dot")]
    | Annotated[GeneralScore, Tag("general")]
    | Annotated[AdditiveScore, Tag("additive")]
    | Annotated[ConcatScore, Tag("concat")]
    | Annotated[CosineScore, Tag("cosine")]
)
Score = Annotated[
    Matching | Annotated[LocationScore, Tag("location")],
    by_type("general"),
    name_or_mapping,
]


class SoftAlignment(Section):
    """The softmax: every piece gets some weight."""

    type: Literal["soft"] = Field(default="soft", description="The alignment.")


class HardAlignment(Section):
    """One piece gets all weight (Xu 2015)."""

    type: Literal["hard"] = Field(default="hard", description="The alignment.")
    training: Literal["reinforce", "straight_through"] = Field(
        default="reinforce",
        description="How gradients pass the choice: by reward, or as if it were soft.",
    )
    expectation: Share = Field(
        default=0.5, description="Share of the rows that are trained with soft weights."
    )


class SparsemaxAlignment(Section):
    """The sparsemax: what matches badly weighs exactly 0 (Martins 2016)."""

    type: Literal["sparsemax"] = Field(default="sparsemax", description="The alignment.")


class TopKAlignment(Section):
    """The softmax over the k best pieces."""

    type: Literal["top_k"] = Field(default="top_k", description="The alignment.")
    k: Positive = Field(default=8, description="Pieces that get weight.")


class LocalMAlignment(Section):
    """A window around the step's own position (Luong 2015, local-m)."""

    type: Literal["local_m"] = Field(default="local_m", description="The alignment.")
    window: Positive = Field(default=10, description="Pieces on either side of the centre.")


class LocalPAlignment(Section):
    """A window around a predicted position, with a Gaussian (Luong 2015, local-p)."""

    type: Literal["local_p"] = Field(default="local_p", description="The alignment.")
    window: Positive = Field(default=10, description="Pieces on either side of the centre.")


Alignment = Annotated[
    Annotated[SoftAlignment, Tag("soft")]
    | Annotated[HardAlignment, Tag("hard")]
    | Annotated[SparsemaxAlignment, Tag("sparsemax")]
    | Annotated[TopKAlignment, Tag("top_k")]
    | Annotated[LocalMAlignment, Tag("local_m")]
    | Annotated[LocalPAlignment, Tag("local_p")],
    by_type("soft"),
    name_or_mapping,
]


class Attention(Section):
    """How the decoder looks at the source."""

    score: Score = Field(
        default=GeneralScore(),
        description="How well a query matches a key, a name or a mapping. Where it is left out: "
        "general for luong, additive for bahdanau, scaled_dot for transformer.",
    )
    alignment: Alignment = Field(
        default=SoftAlignment(), description="How scores become weights, a name or a mapping."
    )


# The score that goes with a decoder where the file names none: its paper's.
_SCORES = {"luong": "general", "bahdanau": "additive", "transformer": "scaled_dot"}


def with_own_score(value: Any) -> Any:
    """A section ``model`` with the score of the decoder's paper where it names none."""
    if not isinstance(value, dict) or not isinstance(value.get("attention", {}), dict):
        return value
    decoder = value.get("decoder")
    kind = decoder.get("type", "luong") if isinstance(decoder, dict) else "luong"
    attention = {"score": _SCORES.get(str(kind), "general"), **value.get("attention", {})}
    return {**value, "attention": attention}
