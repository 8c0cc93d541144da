"""The words of the data."""

from __future__ import annotations

import functools
from typing import Any

# Letters, marks and digits make words. Scripts that write no spaces count a sign as a word.
_ALONE = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}"
_WORD = rf"[{_ALONE}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{_ALONE}]]+"


def words(text: str) -> list[str]:
    """The words of a text in any script; of Chinese, Japanese and Thai the characters."""
    return _pattern().findall(text)


@functools.cache
def _pattern() -> Any:
    import regex

    return regex.compile(_WORD, regex.VERSION1)
