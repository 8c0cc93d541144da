"""Properties of texts: the form in which they are compared, their words and their scripts."""

import re
import unicodedata
from collections import Counter
from functools import lru_cache

import regex

from regard.core.characters import limit_marks
from regard.models.vocabulary import UNSPACED

_LETTER = rf"[[\w\p{{N}}]--[{UNSPACED}]]"
_WORD = regex.compile(rf"[{UNSPACED}]\p{{M}}*|{_LETTER}+(?:['’]{_LETTER}+)*", regex.VERSION1)
# Three times as fast for letters without combining marks in scripts that put spaces between words.
_PLAIN_WORD = re.compile(r"\w+(?:['’]\w+)*")
_NOT_PLAIN = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0590-\u200f\u203f\u2040\u2054\u2080-\u20ff\u2460-\u24ff"
    "\u2c00-\U0010ffff]"
)
# Punctuation, digits and accents belong to no script.
_NO_SCRIPT = frozenset({"Zyyy", "Zinh", "Zzzz"})
_ASCII_NON_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())


def normalize(text: str) -> str:
    """Return the form in which two texts count as the same: stripped and NFC-normalised."""
    text = text.strip()
    return text if text.isascii() else _compose(text)


def split_words(text: str) -> list[str]:
    """Return the words of a text in NFC, without punctuation.

    Of scripts without spaces between words, such as Chinese, Japanese and Thai, each character is a
    word.
    """
    if text.isascii():
        return _PLAIN_WORD.findall(text)
    text = _compose(text)
    if not _NOT_PLAIN.search(text):
        return _PLAIN_WORD.findall(text)
    return _WORD.findall(text)


def _compose(text: str) -> str:
    """Return a text in NFC, without the excess of long runs of combining marks."""
    return unicodedata.normalize("NFC", limit_marks(text))


def count_scripts(text: str) -> Counter[str]:
    """Count the letters of each script by its ISO 15924 code, for example ``Latn``."""
    ascii_text = text.encode("ascii", "ignore")
    counts: Counter[str] = Counter()
    if letters := len(ascii_text.translate(None, _ASCII_NON_LETTERS)):
        counts["Latn"] = letters
    if len(ascii_text) < len(text):
        for letter, count in Counter([letter for letter in text if letter > "\x7f"]).items():
            if (code := _script_of(letter)) not in _NO_SCRIPT:
                counts[code] += count
    return counts


def script_name(code: str) -> str:
    """Return the English name of a script: ``Cyrillic`` for ``Cyrl``."""
    from fontTools import unicodedata as scripts

    return str(scripts.script_name(code)).replace("_", " ")


@lru_cache(maxsize=65536)
def _script_of(letter: str) -> str:
    from fontTools import unicodedata as scripts

    return str(scripts.script(letter))
