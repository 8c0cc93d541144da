"""SentencePiece normalization rules that also make each punctuation mark a word."""

import sys
import unicodedata
from collections.abc import Iterator

import sentencepiece

from regard.components.tokenizer_trainer.joiner_rules import JOINER

# The half-width kana U+FF66 to U+FF9D and their two marks by their full-width forms.
_HALF_WIDTH = {unicodedata.normalize("NFKC", chr(c)): chr(c) for c in range(0xFF66, 0xFF9E)}
_HALF_WIDTH_MARKS = {"\u3099": "\uff9e", "\u309a": "\uff9f"}


def punctuation_splitting_rules(name: str, keep_joiners: bool = False) -> str:
    """Return SentencePiece's rules with spaces around punctuation and symbols.

    Word vectors are of words without punctuation: "dog", not "dog,". As rules of the tokenizer,
    they also apply in a served model.

    Args:
        name: the name of SentencePiece's own set of rules, which is extended.
        keep_joiners: whether U+200C stays, as in ``joiner_rules``.

    Returns:
        One rule per line: hexadecimal code points, a tab, and those that replace them.
    """
    normalizer = sentencepiece.SentencePieceNormalizer(
        rule_name=name,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        escape_whitespaces=False,
    )
    rules = []
    for code in range(1, sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cn", "Co", "Cs"):  # unassigned, private use, surrogates
            continue
        if keep_joiners and character == JOINER:
            continue
        replaced = normalizer.normalize(character)
        if category[0] in "PS" and replaced.strip():
            replaced = f" {' '.join(replaced.replace(' ', ''))} "
        forms = {character} if name == "identity" else {character, *_decompositions(character)}
        rules += [f"{_hex(form)}\t{_hex(replaced)}\n" for form in sorted(forms) if form != replaced]
    return "".join(rules)


def _decompositions(character: str) -> Iterator[str]:
    """Yield the forms with combining marks: é as e and an accent, and half-width kana likewise."""
    decomposed = unicodedata.normalize("NFD", character)
    yield decomposed
    base, mark = decomposed[0], decomposed[1:]
    if mark in _HALF_WIDTH_MARKS and base in _HALF_WIDTH:
        yield _HALF_WIDTH[base] + _HALF_WIDTH_MARKS[mark]


def _hex(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)
