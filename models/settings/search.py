"""The section ``search``: how a trained model decodes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from regard.models.settings.base import Count, Positive, Section, by_type


class SearchLimits(Section):
    """Limits on lengths, which every search has."""

    max_length_factor: Annotated[float, Field(ge=0.0)] = Field(
        default=2.0,
        description="Maximum length of an output: max_length_factor x source tokens + "
        "max_length_offset.",
    )
    max_length_offset: Count = Field(default=10, description="See max_length_factor.")
    min_length_factor: Annotated[float, Field(ge=0.0)] = Field(
        default=0.0, description="Minimum length of an output, relative to the source tokens."
    )
    max_source_length: Positive = Field(default=256, description="Maximum number of source tokens.")
    long_source: Literal["truncate", "refuse"] = Field(
        default="truncate",
        description="What to do with longer sources: truncate them and report it, or return an "
        "error.",
    )


class _DeterministicSearchConfig(SearchLimits):
    no_repeat_ngram_size: Count = Field(
        default=0, description="Length of n-grams that must not repeat; 0: no limit."
    )
    repetition_penalty: Annotated[float, Field(ge=1.0)] = Field(
        default=1.0,
        description="Penalty on the logits of tokens that the output already contains (CTRL); 1: "
        "none.",
    )


class GreedySearchConfig(_DeterministicSearchConfig):
    """Selects the most probable token at every step."""

    type: Literal["greedy"] = Field(default="greedy", description="Search type.")


class BeamSearchConfig(_DeterministicSearchConfig):
    """Keeps the best partial hypotheses at every step."""

    type: Literal["beam"] = Field(default="beam", description="Search type.")
    beam_size: Positive = Field(default=5, description="Number of hypotheses kept at every step.")
    length_penalty: Annotated[float, Field(ge=0.0)] = Field(
        default=0.6,
        description="GNMT's alpha: 0 prefers short hypotheses, 1 long ones.",
    )
    coverage_penalty: Annotated[float, Field(ge=0.0)] = Field(
        default=0.0,
        description="GNMT's beta: the penalty on source tokens without attention.",
    )
    n_best: Positive = Field(default=1, description="Number of hypotheses to return.")
    patience: Annotated[float, Field(gt=0.0)] | None = Field(
        default=None,
        description="Stop after patience x beam_size finished hypotheses; most systems use 1. "
        "null: stop when no better hypothesis is possible.",
    )


class SamplingSearchConfig(SearchLimits):
    """Samples every token from its distribution."""

    type: Literal["sampling"] = Field(default="sampling", description="Search type.")
    temperature: Annotated[float, Field(gt=0.0)] = Field(
        default=1.0, description="Below 1: sharper than the model; above 1: flatter."
    )
    top_k: Count = Field(default=0, description="Sample from the top k tokens only; 0: from all.")
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        default=1.0,
        description="Sample from the smallest set of tokens with this total probability.",
    )
    samples: Positive = Field(
        default=1, description="Number of samples, returned in the order of their probability."
    )
    seed: Count = Field(
        default=0, description="Random seed; equal sources and seeds give equal samples."
    )


SearchConfig = Annotated[
    Annotated[GreedySearchConfig, Tag("greedy")]
    | Annotated[BeamSearchConfig, Tag("beam")]
    | Annotated[SamplingSearchConfig, Tag("sampling")],
    by_type("beam"),
]
