"""Tags: the special tokens that begin a source and say what its output is like.

A tag such as ``de`` stands in the source as ``<de> A dog runs.`` (Johnson et al. 2017, "Google's
Multilingual Neural Machine Translation System: Enabling Zero-Shot Translation", §3).
"""

import unicodedata
from collections.abc import Iterable

from regard.core.characters import is_blank, limit_marks

# Characters that the normalization NFKC changes to "<", and this one.
_BRACKETS = "<\ufe64\uff1c"


def add_tag(tag: str, text: str) -> str:
    """Return a text that begins with a tag; a blank text stays as it is, for it has no output."""
    return f"<{tag}> {text}" if not is_blank(text) else text


def split_tag(text: str, tags: Iterable[str]) -> tuple[str | None, str]:
    """Return the tag that a text begins with, or None, and the rest of the text."""
    for tag in tags:
        if text.lstrip().startswith(f"<{tag}>"):
            return tag, text.lstrip()[len(tag) + 2 :].removeprefix(" ")
    return None, text


def find_tag(text: str, tags: Iterable[str]) -> str | None:
    """Return a tag that a text contains anywhere; a model would read it as the tag."""
    if not any(bracket in text for bracket in _BRACKETS):
        return None
    plain = unicodedata.normalize("NFKC", limit_marks(text)).casefold()  # as SentencePiece may do
    plain = "".join(letter for letter in plain if unicodedata.category(letter) != "Cc")
    return next((tag for tag in tags if f"<{tag.casefold()}>" in plain), None)


def user_symbols(tags: Iterable[str], kind: str) -> list[str]:
    """Return the symbols by which a SentencePiece vocabulary has one token for each tag.

    The first of a tag keeps its text from the normalization. The second one includes the space that
    SentencePiece adds before a text, which would otherwise be a token of its own; a vocabulary of
    words adds it to the first.

    Args:
        tags: the tags.
        kind: the type of the vocabulary, for example ``bpe``.
    """
    starts = ("",) if kind == "word" else ("", "\u2581")
    return [f"{start}<{tag}>" for tag in tags for start in starts]
