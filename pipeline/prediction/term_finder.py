"""Find the terms of a glossary in a text, in time that grows with the text, not with the terms."""

import re
from bisect import bisect_right
from collections.abc import Iterable

# A character of a word. Scripts without spaces (Thai, Lao, Burmese, Khmer, Chinese, Japanese) do
# not show where a word begins or ends.
_WORD = re.compile(
    r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)


class TermFinder:
    """Finds terms as whole words; of overlapping terms the first, and then the longest, counts.

    All terms that a text begins with are a chain: the last of them in sorted order, the longest
    term that this one begins with, and so on.

    Args:
        terms: the terms, case-folded if the texts are.
    """

    def __init__(self, terms: Iterable[str]):
        self._terms = sorted({term for term in terms if term})
        self._prefixes: list[int] = []  # index of the longest other term that a term begins with
        chain: list[int] = []
        for index, term in enumerate(self._terms):
            while chain and not term.startswith(self._terms[chain[-1]]):
                chain.pop()
            self._prefixes.append(chain[-1] if chain else -1)
            chain.append(index)
        self._starts = {term[0] for term in self._terms}
        self._max_length = max(map(len, self._terms), default=0)

    def find(self, text: str) -> list[str]:
        """Return the terms in a text, in their order there."""
        matches = []
        position = 0
        while position < len(text):
            term = self._term_at(text, position) if text[position] in self._starts else None
            if term:
                matches.append(term)
            position += len(term or " ")
        return matches

    def _term_at(self, text: str, position: int) -> str | None:
        """Return the longest term that is a whole word at a position."""
        following = text[position : position + self._max_length]
        index = bisect_right(self._terms, following) - 1
        while index >= 0:
            term = self._terms[index]
            if following.startswith(term) and _is_whole(text, position, position + len(term)):
                return term
            index = self._prefixes[index]
        return None


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether no word continues before or after a part of a text."""
    if start > 0 and _shows_its_ends(text[start]) and _WORD.match(text[start - 1]):
        return False
    return not (end < len(text) and _shows_its_ends(text[end - 1]) and _WORD.match(text[end]))


def _shows_its_ends(character: str) -> bool:
    """Return whether a character is not of a script without spaces."""
    return bool(_WORD.match(character)) or not re.match(r"\w", character)
