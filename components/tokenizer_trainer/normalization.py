"""Rules of normalization that also make each sign of punctuation a word of its own."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator

import sentencepiece

# The kana of U+FF66 to U+FF9D and their two marks, by what they are in full width.
_HALF_WIDTH = {unicodedata.normalize("NFKC", chr(c)): chr(c) for c in range(0xFF66, 0xFF9E)}
_HALF_WIDTH_MARKS = {"\u3099": "\uff9e", "\u309a": "\uff9f"}


def splitting_rules(name: str) -> str:
    """SentencePiece's rules with spaces around punctuation and symbols, as it reads rules.

    Word vectors are of words without their punctuation: "dog", not "dog,". As rules of the
    tokenizer itself they hold wherever it goes, also into a served model.

    Args:
        name: the rules to begin with, one of SentencePiece's own.

    Returns:
        A line a rule: code points in hexadecimal, a tab, and those that take their place.
    """
    normal = sentencepiece.SentencePieceNormalizer(
        rule_name=name,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        escape_whitespaces=False,
    )
    rules = []
    for code in range(1, sys.maxunicode + 1):
        sign = chr(code)
        category = unicodedata.category(sign)
        if category in ("Cn", "Co", "Cs"):  # unassigned, private, halves of a pair
            continue
        replaced = normal.normalize(sign)
        if category[0] in "PS" and replaced.strip():
            replaced = f" {' '.join(replaced.replace(' ', ''))} "
        forms = {sign} if name == "identity" else {sign, *_spelt(sign)}
        rules += [f"{_hex(form)}\t{_hex(replaced)}\n" for form in sorted(forms) if form != replaced]
    return "".join(rules)


def _spelt(sign: str) -> Iterator[str]:
    """The same letter with marks of its own: é as e and an accent, and so in half-width kana."""
    apart = unicodedata.normalize("NFD", sign)
    yield apart
    if len(apart) == 2 and apart[1] in _HALF_WIDTH_MARKS and apart[0] in _HALF_WIDTH:
        yield _HALF_WIDTH[apart[0]] + _HALF_WIDTH_MARKS[apart[1]]


def _hex(text: str) -> str:
    return " ".join(f"{ord(sign):X}" for sign in text)
