"""Word-level differences between two texts."""

import difflib
import re
from collections.abc import Sequence

# Words, single signs, and the spaces between them; in scripts without spaces, each sign is a word.
_WORDS = re.compile(
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u0e00-\u0eff\u3040-\u30ff"
    r"\u3400-\u9fff\uf900-\ufaff]+|\s+|[^\w\s]"
)
# A part of a text, and whether it differs from the other text.
Part = tuple[str, bool]


def split_words(text: str) -> list[str]:
    """Split a text into words, signs and spaces; joined again, they are the text."""
    return _WORDS.findall(text)


def closest_text(text: str, candidates: Sequence[str]) -> int:
    """The index of the candidate with most words in common with a text; the first of equals."""
    if len(candidates) == 1:
        return 0
    words = split_words(text)
    ratios = [
        difflib.SequenceMatcher(None, words, split_words(candidate), autojunk=False).ratio()
        for candidate in candidates
    ]
    return max(range(len(candidates)), key=ratios.__getitem__)


def diff_texts(one: str, other: str, truncated: bool = False) -> tuple[list[Part], list[Part]]:
    """Split two texts into parts that are equal or differ.

    Spaces alone do not differ; a space between two parts that differ belongs to them.

    Args:
        one: a text.
        other: another text.
        truncated: whether one of them is truncated, so that their ends cannot be compared.
    """
    first, second = split_words(one), split_words(other)
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    first_parts: list[Part] = []
    second_parts: list[Part] = []
    for _, a, b, c, d in matcher.get_opcodes():
        differs = first[a:b] != second[c:d]
        first_parts += [(word, differs) for word in first[a:b]]
        second_parts += [(word, differs) for word in second[c:d]]
    merged = _merge(first_parts), _merge(second_parts)
    if truncated:
        for parts in merged:
            if parts and parts[-1][1]:
                parts[-1] = (parts[-1][0], False)
    return merged


def _merge(parts: Sequence[Part]) -> list[Part]:
    """Merge neighbours of the same kind."""
    kinds = [differs for _, differs in parts]
    for at, (word, _) in enumerate(parts):
        if word.isspace():
            around = kinds[at - 1 : at] + [differs for _, differs in parts[at + 1 : at + 2]]
            kinds[at] = len(around) == 2 and all(around)
    merged: list[Part] = []
    for (word, _), differs in zip(parts, kinds, strict=True):
        if merged and merged[-1][1] == differs:
            merged[-1] = (merged[-1][0] + word, differs)
        else:
            merged.append((word, differs))
    return merged
