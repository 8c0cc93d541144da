"""The section ``search``: how a trained model decodes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from regard.models.settings.base import (
    ByType,
    Count,
    NonNegative,
    Positive,
    PositiveFloat,
    Section,
    Size,
    option,
)


class SearchLimits(Section):
    """Limits on lengths, which every search has."""

    max_length_factor: NonNegative = option(
        2.0, "Maximum length of an output: max_length_factor x source tokens + max_length_offset."
    )
    max_length_offset: Annotated[int, Field(ge=0, le=10**6)] = option(10, "See max_length_factor.")
    min_length_factor: NonNegative = option(0.0, "Minimum length of an output per source token.")
    max_source_length: Positive = option(256, "Maximum number of source tokens.")
    long_source: Literal["truncate", "refuse"] = option(
        "truncate",
        "What to do with longer sources: truncate them and report it, or return an error.",
    )


class _DeterministicSearchConfig(SearchLimits):
    no_repeat_ngram_size: Count = option(0, "Length of n-grams that must not repeat; 0: no limit.")
    repetition_penalty: Annotated[float, Field(ge=1.0)] = option(
        1.0, "Penalty on the logits of tokens that the output already contains (CTRL); 1: none."
    )


class GreedySearchConfig(_DeterministicSearchConfig):
    """Selects the most probable token at every step."""

    type: Literal["greedy"] = option("greedy", "Search type.")


class BeamSearchConfig(_DeterministicSearchConfig):
    """Keeps the best partial hypotheses at every step."""

    type: Literal["beam"] = option("beam", "Search type.")
    beam_size: Size = option(5, "Number of hypotheses kept at every step.")
    length_penalty: NonNegative = option(0.6, "GNMT's alpha: 0 prefers short outputs, 1 long ones.")
    coverage_penalty: NonNegative = option(0.0, "GNMT's beta, which penalizes unattended tokens.")
    n_best: Positive = option(1, "Number of hypotheses to return.")
    patience: PositiveFloat | None = option(
        None,
        "Stop after patience x beam_size finished hypotheses; most systems use 1. "
        "null: stop when no better hypothesis is possible.",
    )


class _SampledSearchConfig(SearchLimits):
    temperature: PositiveFloat = option(1.0, "Below 1: sharper than the model; above 1: flatter.")
    top_k: Count = option(0, "Sample from the top k tokens only; 0: from all.")
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = option(
        1.0, "Sample from the smallest set of tokens with this total probability."
    )
    seed: Count = option(0, "Random seed; equal sources and seeds give equal samples.")


class SamplingSearchConfig(_SampledSearchConfig):
    """Samples every token from its distribution."""

    type: Literal["sampling"] = option("sampling", "Search type.")
    samples: Positive = option(1, "Number of samples, returned in the order of their probability.")


class MbrSearchConfig(_SampledSearchConfig):
    """Selects the sample that is most similar to all samples: minimum Bayes risk decoding."""

    type: Literal["mbr"] = option("mbr", "Search type.")
    samples: Annotated[int, Field(ge=1, le=1024)] = option(64, "Number of samples to compare.")
    utility: Literal["chrf", "bleu"] = option("chrf", "Similarity: sacreBLEU's chrF or BLEU.")
    n_best: Positive = option(1, "Number of different hypotheses to return.")


SearchConfig = Annotated[
    GreedySearchConfig | BeamSearchConfig | SamplingSearchConfig | MbrSearchConfig,
    ByType("beam"),
]
