"""Traces of earlier processing in texts: HTML entities, and words split by a tokenizer."""

import re
from html.entities import html5

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_NAMED = re.compile(r"&([A-Za-z][A-Za-z0-9]*);")
# Moses and the Penn Treebank put spaces before punctuation and contractions, and mark hyphens. The
# space before ; : ! ? is French orthography.
_TOKENIZED = re.compile(
    r"(?<=\S) (?:[,.]|@-@|(?:'|&apos;)(?:s|t|re|ve|ll|m|d)|n(?:'|&apos;)t)(?=\s|$)"
)
_TRACES = (" ,", " .", "@-@", " '", " &apos;", " n'", " n&")


def find_entity(text: str) -> str | None:
    """Return the first HTML entity of a text, such as ``&quot;``; None if it has none."""
    if "&" not in text:
        return None
    for match in _ENTITY.finditer(text):
        name = _NAMED.fullmatch(match[0])
        if name is None or f"{name[1]};" in html5:
            return match[0]
    return None


def find_tokenization(text: str) -> str | None:
    """Return the first trace of a tokenizer in a text, such as `` ,`` or ``@-@``; None without."""
    if not any(trace in text for trace in _TRACES):
        return None
    match = _TOKENIZED.search(text)
    return match and match[0]
