"""Invisible characters, of which a blank text consists, and runs of combining marks."""

import functools
import re
import unicodedata

# White space, controls, joiners, direction marks, variation selectors, fillers and tags; also
# U+2581, U+FFFD and the empty Braille pattern, of which the default normalization, or a font, makes
# a space. The syntax is that of `re` and of RE2, inside a character class.
INVISIBLE = (
    r"\x00-\x20\x7f-\xa0\xad"
    "\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u2581\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffd\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# The expression of a whole text without a visible character; a tokenizer may give it no tokens.
BLANK = f"[{INVISIBLE}]*"
# The longest run of combining marks in the Stream-Safe Text Format of Unicode (UAX #15, section
# 13). Normalization sorts a run in a time that grows with the square of its length.
MAX_MARKS = 30

_IS_BLANK = re.compile(BLANK)
# All combining marks are before this code point.
_MARKS_END = 0x20000


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character, so that a model has nothing to read."""
    return _IS_BLANK.fullmatch(text) is not None


def limit_marks(text: str) -> str:
    """Return a text whose runs of combining marks have at most ``MAX_MARKS``; the rest is left out.

    No orthography needs as many.
    """
    if text.isascii() or len(text) <= MAX_MARKS:
        return text
    return _long_runs().sub(r"\1", text)


@functools.cache
def _long_runs() -> re.Pattern[str]:
    """Return the expression of runs of more than ``MAX_MARKS``; the group is what remains.

    A mark is a character whose decomposition begins with a combining class other than 0.
    """
    codes = [
        code
        for code in range(0x300, _MARKS_END)
        if unicodedata.combining(unicodedata.normalize("NFKD", chr(code))[0])
    ]
    marks = f"[{''.join(map(chr, codes))}]"
    return re.compile(f"({marks}{{{MAX_MARKS}}}){marks}+")
