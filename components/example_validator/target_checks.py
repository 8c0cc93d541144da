"""Checks of targets against other sections: a normalization that changes them, words of metrics.

A model writes only what its tokenizer keeps. A target with other characters can never be written,
so metrics that compare whole texts stay low, however good the model is.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import regex

from regard.components.settings.evaluation import EvaluationConfig
from regard.components.settings.tokenizer import TokenizerConfig
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.models.vocabulary import UNSPACED

if TYPE_CHECKING:
    import sentencepiece

# Tokenizers of sacreBLEU that separate words at spaces.
_SPACED = ("13a", "intl", "none")
# The mean length of what is between spaces, from which on it is no word. Words of Chinese that are
# separated by spaces have 1.7 characters, those of Thai and Burmese up to 5.
_MAX_WORD = 6.0
_JOINER = "\u200c"  # the tokenizer keeps those between letters
_STRAY_JOINER = re.compile(f" {_JOINER}+|{_JOINER}+ |^{_JOINER}+|{_JOINER}+$")
_SPACES = re.compile(" +")
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

    def to_json(self) -> str:
        """Return the settings as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> TargetSettings:
        """Return the settings from JSON."""
        content = json.loads(text)
        return TargetSettings(**{**content, "thresholds": tuple(content["thresholds"])})


def output_features(features: Sequence[Feature]) -> list[str]:
    """Return the text features that a model writes; a part of an input is copied from it."""
    return [f.name for f in features if f.tokenized and f.role == "reference" and not f.part_of]


def normalize_target(text: str, normalization: str) -> str:
    """Return a target as a tokenizer with this normalization gives it back.

    The folding of case is left out: who sets it wants it. White space around a text, and the number
    of spaces, do not count.
    """
    name = normalization.removesuffix("_cf")
    if name == "identity" or (text.isascii() and text.isprintable()):
        return text
    parts = map(_normalizer(name).normalize, text.split(_JOINER))
    return _STRAY_JOINER.sub(" ", _JOINER.join(parts))


def is_changed(text: str, normalization: str) -> bool:
    """Return whether a normalization changes more than the number of spaces of a target."""
    other = normalize_target(text, normalization)
    return other != text and _SPACES.sub(" ", other).strip() != _SPACES.sub(" ", text).strip(" ")


@functools.cache
def _normalizer(name: str) -> sentencepiece.SentencePieceNormalizer:
    import sentencepiece

    return sentencepiece.SentencePieceNormalizer(
        rule_name=name,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        escape_whitespaces=False,
    )


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
