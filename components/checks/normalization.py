"""The check ``normalization``: targets that the normalization of the tokenizer changes.

A model writes only what its tokenizer keeps. A target with other characters can never be written,
so metrics that compare whole texts stay low, however good the model is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from regard.components.checks.base import CheckContext, RowCheck, RowTexts
from regard.core.bounds import Share
from regard.core.formatting import changed_part

if TYPE_CHECKING:
    import sentencepiece

_JOINER = "\u200c"  # the tokenizer keeps those between letters
_STRAY_JOINER = re.compile(f" {_JOINER}+|{_JOINER}+ |^{_JOINER}+|{_JOINER}+$")
_SPACES = re.compile(" +")


class NormalizationCheck(RowCheck):
    """Rows with a target that tokenizer.normalization changes, for example a hard space, … or
    full-width signs, so that a model cannot write it. Case and the number of spaces do not count.

    Attributes:
        action: What happens above the limit.
    """

    summary: ClassVar[str] = "have a target that the tokenizer's normalization changes"
    alternative: ClassVar[str] = "`tokenizer.normalization: identity` keeps every character."

    limit: Share = 0.05
    action: Literal["warn", "fail"] = "warn"

    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        return any(
            is_changed(text, context.normalization)
            for name in row.names.outputs
            for text in row.by_name[name]
        )

    def details(self, row: RowTexts, context: CheckContext) -> Iterator[str]:
        for name in row.names.outputs:
            for text in row.by_name[name]:
                if is_changed(text, context.normalization):
                    other = normalize_target(text, context.normalization)
                    part, old = changed_part(other, text), changed_part(text, other)
                    yield f"{name} becomes {part!r}, not {old!r}"


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
