"""The section ``search``: how a trained model decodes."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from regard.core.bounds import Count, NonNegative, Positive, PositiveFloat, Size
from regard.models.settings.base import ByType, Problem, Section


class SearchLimits(Section):
    """Limits on lengths, which every search has.

    Attributes:
        max_length_factor: Maximum length of an output: max_length_factor x source tokens +
            max_length_offset.
        max_length_offset: Tokens that an output may have beyond those of max_length_factor.
        min_length_factor: Minimum length of an output per source token.
        max_source_length: Maximum number of source tokens.
        long_source: What to do with longer sources: truncate them and report it, or return an
            error.
    """

    max_length_factor: NonNegative = 2.0
    max_length_offset: Annotated[int, Field(ge=0, le=10**6)] = 10
    min_length_factor: NonNegative = 0.0
    max_source_length: Positive = 256
    long_source: Literal["truncate", "refuse"] = "truncate"

    @property
    def longest_output(self) -> int:
        """The maximum number of tokens of an output, EOS not included."""
        return self.max_length_offset + int(self.max_source_length * self.max_length_factor)

    def own_problems(self) -> Iterator[Problem]:
        """Yield limits that no output can meet."""
        if self.max_length_factor == 0 and self.max_length_offset == 0:
            message = "with max_length_factor: 0 every hypothesis would be empty"
            yield Problem(("max_length_offset",), message)
        if self.min_length_factor > self.max_length_factor:
            message = f"{self.min_length_factor:g} is more than max_length_factor: "
            yield Problem(("min_length_factor",), f"{message}{self.max_length_factor:g}")


class _DeterministicSearchConfig(SearchLimits):
    """Options of searches for the most probable output.

    Attributes:
        no_repeat_ngram_size: Length of n-grams that must not repeat; 0: no limit.
    """

    no_repeat_ngram_size: Count = 0


class GreedySearchConfig(_DeterministicSearchConfig):
    """Selects the most probable token at every step.

    Attributes:
        type: Search type.
    """

    type: Literal["greedy"] = "greedy"


class BeamSearchConfig(_DeterministicSearchConfig):
    """Keeps the best partial hypotheses at every step.

    Attributes:
        type: Search type.
        beam_size: Number of hypotheses kept at every step.
        length_penalty: GNMT's alpha: 0 prefers short outputs, 1 long ones.
        length_offset: The n by which the penalty is ((n + length) / (n + 1))^length_penalty. 5 as
            in GNMT; 0: the power of the length, as in Marian and fairseq.
        coverage_penalty: GNMT's beta, which penalizes unattended tokens.
        n_best: Number of hypotheses to return.
        patience: Stop after patience x beam_size finished hypotheses; most systems use 1. null:
            stop when no better hypothesis is possible. auto: 1 with a length penalty, otherwise
            null. present_length: stop when beam_size have finished and no partial hypothesis would
            be better if it ended now, as Hugging Face's Transformers by default.
    """

    type: Literal["beam"] = "beam"
    beam_size: Size = 5
    length_penalty: NonNegative = 0.6
    length_offset: NonNegative = 5.0
    coverage_penalty: NonNegative = 0.0
    n_best: Positive = 1
    patience: PositiveFloat | Literal["auto", "present_length"] | None = "auto"

    @property
    def effective_patience(self) -> float | Literal["present_length"] | None:
        """The patience without ``auto``.

        Without a length penalty the exact rule stops as soon as the best hypothesis has ended, so
        that a patience saves nothing and loses outputs.
        """
        if self.patience == "auto":
            return 1.0 if self.length_penalty > 0 else None
        return self.patience

    def own_problems(self) -> Iterator[Problem]:
        """Yield options with which there are not ``n_best`` hypotheses."""
        yield from super().own_problems()
        patience = self.effective_patience
        if self.n_best > self.beam_size:
            yield Problem(("n_best",), f"{self.n_best} is more than beam_size: {self.beam_size}")
        elif isinstance(patience, float) and patience * self.beam_size < self.n_best:
            message = f"too low for n_best: {self.n_best} with beam_size: {self.beam_size}; use at "
            yield Problem(("patience",), f"{message}least {self.n_best / self.beam_size:.3g}")


class SamplingSearchConfig(SearchLimits):
    """Samples every token from its distribution.

    Attributes:
        type: Search type.
        temperature: Below 1: sharper than the model; above 1: flatter.
        top_k: Sample from the top k tokens only; 0: from all.
        top_p: Sample from the smallest set of tokens with this total probability.
        seed: Random seed; equal sources and seeds give equal samples.
        samples: Number of samples, returned in the order of their probability.
    """

    type: Literal["sampling"] = "sampling"
    temperature: PositiveFloat = 1.0
    top_k: Count = 0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    seed: Count = 0
    samples: Positive = 1


SearchConfig = Annotated[
    GreedySearchConfig | BeamSearchConfig | SamplingSearchConfig, ByType("beam")
]
