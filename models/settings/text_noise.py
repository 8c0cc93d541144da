"""The keys of changed texts, which training and evaluation have in common."""

from collections.abc import Iterator
from typing import Literal

from regard.core.bounds import Share
from regard.core.text_noise import NoiseOptions
from regard.models.settings.base import Problem, Section

NoiseKind = Literal[
    "upper_case",
    "title_case",
    "missing_accents",
    "missing_punctuation",
    "doubled_punctuation",
    "typing_errors",
    "spaces",
]


class WritingErrorsConfig(Section):
    """How words are mistyped.

    Attributes:
        layout: Keyboard whose neighbouring keys make typing errors.
        rate: Probability that a word has an error, in a text with typing errors or wrong spaces.
    """

    layout: Literal["qwerty", "qwertz", "azerty", "jcuken"] = "qwerty"
    rate: Share = 0.2

    def options(self, symbols: tuple[str, ...] = ()) -> NoiseOptions:
        """Return what the changes depend on.

        Args:
            symbols: strings that no change touches.
        """
        return NoiseOptions(self.layout, self.rate, symbols)


class TextNoiseConfig(WritingErrorsConfig):
    """Shares of the sources that are changed, drawn again in every epoch; the rest stays clean.

    A source has at most one of the changes, so that the sum of the shares is at most 1.

    Attributes:
        layout: Keyboard whose neighbouring keys make typing errors.
        rate: Probability that a word has an error, in a source with typing errors or wrong spaces.
        upper_case: Share in capital letters.
        title_case: Share with a capital letter at the beginning of each word.
        missing_accents: Share without the accents of Latin and Greek letters.
        missing_punctuation: Share without punctuation, except between letters or digits.
        doubled_punctuation: Share with doubled marks of sentences, such as `!!`.
        typing_errors: Share with letters of neighbouring keys.
        spaces: Share with missing spaces and spaces within words.
        tokenizer: Train the tokenizer on texts with the same changes, too. Otherwise a text in
            capital letters has about three times as many tokens as before, often one per letter.
    """

    upper_case: Share = 0.0
    title_case: Share = 0.0
    missing_accents: Share = 0.0
    missing_punctuation: Share = 0.0
    doubled_punctuation: Share = 0.0
    typing_errors: Share = 0.0
    spaces: Share = 0.0
    tokenizer: bool = True

    def probabilities(self) -> dict[str, float]:
        """Return the shares by kind, of kinds with a share above 0."""
        values = self.model_dump(exclude={*WritingErrorsConfig.model_fields, "tokenizer"})
        return {kind: share for kind, share in values.items() if share}

    def own_problems(self) -> Iterator[Problem]:
        """Yield shares that are more than everything, or nothing."""
        total = sum(self.probabilities().values())
        if total > 1 + 1e-9:
            yield Problem((), f"the shares must add up to at most 1; they add up to {total:g}")
        elif not total:
            yield Problem((), "no share is above 0, so nothing changes; set one, or use null")
