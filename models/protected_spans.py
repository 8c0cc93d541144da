"""Protected spans: URLs, numbers, tags and the like, which models see as numbered symbols.

A span that a text contains is replaced by a symbol, a character of a private use area of Unicode
that is one token of the vocabulary. A slot is the number of a symbol: first those of literals, then
those of opening tags, then those of closing tags. A pair of tags has one number.
"""

from typing import Any

# More in one text stay text: every symbol is a row of the embeddings.
LITERALS, PAIRS = 16, 16
SLOTS = LITERALS + 2 * PAIRS
OPEN, CLOSE = LITERALS, LITERALS + PAIRS  # the first slot of opening and of closing tags
# Of plane 15, since fonts of icons use the private characters of plane 0.
_FIRST = 0xF7000

# RE2. Spaces inside of a pair of tags belong to the tags, so that words keep their own space.
VOID_TAG = (
    r"<(?i:br|hr|img|input|wbr)(?:\s[^<>]*)?>|<[A-Za-z][^<>]*/>"
    r"|&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});"
)
CLOSING_TAG = r" *</[A-Za-z][^<>]*>"
OPENING_TAG = r"<[A-Za-z][^<>]*> *"
NUMBER = r"\b[0-9]+(?:[.,:][0-9]+)*\b"
PLACEHOLDER = (
    r"\{\{[^{}]{1,200}\}\}|\$?\{[A-Za-z0-9_.:-]{0,200}\}|%@"
    r"|%(?:\([A-Za-z0-9_.]{1,200}\)|[0-9]{1,3}\$)?[-+#0]{0,4}[0-9]{0,9}(?:\.[0-9]{1,9})?[sdifgeuxX]\b"
)
MARKUP = "|".join((VOID_TAG, CLOSING_TAG, OPENING_TAG))
# In the order in which they are tried at one place of a text.
PATTERNS = {
    "markup": MARKUP,
    "urls": r"""(?:(?:https?|ftp)://|www\.)[^\s<>"]*[^\s<>".,;:!?'’”)\]}]""",
    "emails": r"[A-Za-z0-9][A-Za-z0-9._%+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
    "placeholders": PLACEHOLDER,
    "numbers": NUMBER,
}
# Spans that attention can place: they have no meaning of their own.
INLINE = ("markup", "placeholders")


def symbol(slot: int) -> str:
    """Return the character of a slot."""
    return chr(_FIRST + slot)


def symbol_class(first: int = 0, end: int = SLOTS) -> str:
    """Return what matches the symbols of some slots, for a class of characters in RE2."""
    return rf"\x{{{_FIRST + first:X}}}-\x{{{_FIRST + end - 1:X}}}"


def slots_of(code_points: Any) -> Any:
    """Return the slots of the code points of symbols."""
    return code_points - _FIRST


def protection_symbols() -> list[str]:
    """Return the symbols that a SentencePiece vocabulary needs, each with and without a space.

    The space before a closing tag belongs to the tag.
    """
    spaced = [f"\u2581{symbol(slot)}" for slot in range(CLOSE)]
    return [symbol(slot) for slot in range(SLOTS)] + spaced
