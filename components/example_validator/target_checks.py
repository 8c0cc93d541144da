"""Checks of targets against other sections: whether metrics count their words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict, dataclass

import regex

from regard.components.checks.base import CheckContext
from regard.components.settings.evaluation import EvaluationConfig
from regard.components.settings.tokenizer import TokenizerConfig
from regard.core.errors import UserError
from regard.models.vocabulary import UNSPACED

# Tokenizers of sacreBLEU that separate words at spaces.
_SPACED = ("13a", "intl", "none")
# The mean length of what is between spaces, from which on it is no word. Words of Chinese that are
# separated by spaces have 1.7 characters, those of Thai and Burmese up to 5.
_MAX_WORD = 6.0
_UNSPACED = regex.compile(f"[{UNSPACED}]")


@dataclass(frozen=True)
class TargetSettings:
    """What other sections say about the texts that a model writes.

    Attributes:
        normalization: ``tokenizer.normalization``.
        tokenize: ``evaluation.tokenize``.
        thresholds: the keys of thresholds of metrics whose words are separated by spaces.
    """

    normalization: str = "identity"
    tokenize: str = "13a"
    thresholds: tuple[str, ...] = ()

    @staticmethod
    def from_sections(
        tokenizer: TokenizerConfig | None, evaluation: EvaluationConfig
    ) -> TargetSettings:
        """Return the settings of a configuration."""
        sections = {"evaluation.thresholds": evaluation.thresholds}
        for name, thresholds in evaluation.slices.thresholds.items():
            sections[f"evaluation.slices.thresholds.{name}"] = thresholds
        keys = [
            f"{path}.{metric}"
            for path, thresholds in sections.items()
            for metric in thresholds
            if metric == "ter" or metric.startswith("bleu")
        ]
        return TargetSettings(
            tokenizer.normalization if tokenizer else "identity",
            evaluation.tokenize,
            tuple(keys) if evaluation.tokenize in _SPACED else (),
        )

    def check_context(self, usual_scripts: Mapping[str, Set[str]] | None = None) -> CheckContext:
        """Return what checks of rows know.

        Args:
            usual_scripts: the usual scripts of each feature; None: not known yet.
        """
        return CheckContext(usual_scripts or {}, self.normalization)

    def to_json(self) -> str:
        """Return the settings as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> TargetSettings:
        """Return the settings from JSON."""
        content = json.loads(text)
        return TargetSettings(**{**content, "thresholds": tuple(content["thresholds"])})


def count_words(text: str) -> Counter[str]:
    """Count the ``characters`` of a text, those ``unspaced``, and the ``words`` that have some."""
    if text.isascii():
        return Counter(characters=len(text))
    unspaced = len(_UNSPACED.findall(text))
    words = sum(1 for word in text.split() if _UNSPACED.search(word))
    return Counter(characters=len(text), unspaced=unspaced, words=words)


def find_unsuitable_metrics(
    words: Mapping[str, Mapping[str, int]], targets: TargetSettings
) -> Iterator[UserError]:
    """Yield an error if a threshold applies to words that the targets do not separate.

    Args:
        words: the result of ``count_words`` for all training targets of each feature.
        targets: the settings.
    """
    for feature, counts in words.items():
        length = counts["unspaced"] / max(1, counts["words"])
        if not targets.thresholds or length <= _MAX_WORD:
            continue
        if counts["unspaced"] <= counts["characters"] / 2:
            continue
        message = (
            f"{targets.thresholds[0]}: the tokenizer {targets.tokenize} separates words at spaces, "
            f"but {feature} has {length:.0f} characters between spaces, so a sentence would count "
            "as one word"
        )
        remedy = (
            "Set `evaluation.tokenize` to zh for Chinese, ja-mecab for Japanese, or char for "
            "another script, or use a threshold of chrf."
        )
        yield UserError(message, "evaluation.tokenize", remedy)
