"""Word-level differences between two texts."""

import difflib
import functools
import re
import unicodedata
from collections.abc import Sequence

# Scripts without spaces, in which each sign is a word.
_UNSPACED = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# A part of a text, and whether it differs from the other text.
Part = tuple[str, bool]


def split_words(text: str) -> list[str]:
    """Split a text into words, signs and spaces; joined again, they are the text."""
    return _words_pattern().findall(text)


@functools.cache
def _words_pattern() -> re.Pattern[str]:
    """Words with their apostrophes, hyphens, decimals and accents; single signs; spaces."""
    characters = map(chr, range(0x300, 0x3000))
    marks = "".join(c for c in characters if unicodedata.category(c)[0] == "M") + r"\u200c\u200d"
    sign, letter = rf"[{_UNSPACED}][{marks}]*", rf"[^\W{_UNSPACED}][{marks}]*"
    inner = r"['’·‐-](?=\w)|(?<=\d)[.,:](?=\d)"
    return re.compile(rf"{sign}|(?:{letter})(?:{letter}|{inner})*|\s+|[^\w\s]")


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


def diff_texts(text: str, other: str, truncated: bool = False) -> tuple[list[Part], list[Part]]:
    """Split two texts into parts that are equal or differ.

    Spaces alone do not differ; a space between two parts that differ belongs to them.

    Args:
        text: a text.
        other: another text.
        truncated: whether one of them is truncated, so that their ends cannot be compared.
    """
    first, second = split_words(text), split_words(other)
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
