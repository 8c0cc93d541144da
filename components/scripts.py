"""Which scripts a text is written in: Latin, Cyrillic, Han …"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

# What belongs to no script of its own: punctuation, digits, accents.
_NONE = frozenset({"Zyyy", "Zinh", "Zzzz"})
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())


def scripts(text: str) -> Counter[str]:
    """The letters of each script in a text, by the script's ISO 15924 code such as ``Latn``."""
    plain = text.encode("ascii", "ignore")
    found: Counter[str] = Counter()
    if letters := len(plain.translate(None, _NO_LETTERS)):
        found["Latn"] = letters
    if len(plain) < len(text):
        for letter, count in Counter([letter for letter in text if letter > "\x7f"]).items():
            if (code := _script(letter)) not in _NONE:
                found[code] += count
    return found


def name(code: str) -> str:
    """A script as people call it: ``Cyrillic`` for ``Cyrl``."""
    from fontTools import unicodedata

    return str(unicodedata.script_name(code)).replace("_", " ")


@lru_cache(maxsize=65536)
def _script(letter: str) -> str:
    from fontTools import unicodedata

    return str(unicodedata.script(letter))
