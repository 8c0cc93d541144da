"""Which scripts a text is written in: Latin, Cyrillic, Han …"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

# What belongs to no script of its own: punctuation, digits, accents.
_NONE = frozenset({"Zyyy", "Zinh", "Zzzz"})


def scripts(text: str) -> Counter[str]:
    """The letters of each script in a text, by the script's ISO 15924 code such as ``Latn``."""
    return Counter(code for letter in text if (code := _script(letter)) not in _NONE)


def name(code: str) -> str:
    """A script as people call it: ``Cyrillic`` for ``Cyrl``."""
    from fontTools import unicodedata

    return str(unicodedata.script_name(code)).replace("_", " ")


@lru_cache(maxsize=65536)
def _script(letter: str) -> str:
    from fontTools import unicodedata

    return str(unicodedata.script(letter))
