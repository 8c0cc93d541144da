"""Two texts side by side: which words of one are not in the other."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

# Words, single signs, and what is between them; of scripts without spaces each sign is a word.
_PIECES = re.compile(
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u0e00-\u0eff\u3040-\u30ff"
    r"\u3400-\u9fff\uf900-\ufaff]+|\s+|[^\w\s]"
)
Part = tuple[str, bool]


def pieces(text: str) -> list[str]:
    """The words and signs of a text, and the spaces between them; together they are the text."""
    return _PIECES.findall(text)


def closest(text: str, others: Sequence[str]) -> int:
    """Which of several texts has most words in common with one, the first of equals."""
    if len(others) == 1:
        return 0
    words = pieces(text)
    shares = [
        difflib.SequenceMatcher(None, words, pieces(one), autojunk=False).ratio() for one in others
    ]
    return max(range(len(others)), key=shares.__getitem__)


def differences(one: str, other: str, cut: bool = False) -> tuple[list[Part], list[Part]]:
    """The two texts in parts, each with whether it is missing in the other.

    Spaces alone make no difference, and what is between two such parts goes with them.

    Args:
        one: a text.
        other: another.
        cut: whether one of them has been cut, so that nothing is known of what their ends have.
    """
    first, second = pieces(one), pieces(other)
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    own: list[Part] = []
    theirs: list[Part] = []
    for _, a, b, c, d in matcher.get_opcodes():
        same = first[a:b] == second[c:d]
        own += [(piece, not same) for piece in first[a:b]]
        theirs += [(piece, not same) for piece in second[c:d]]
    found = _joined(own), _joined(theirs)
    if cut:
        for parts in found:
            if parts and parts[-1][1]:
                parts[-1] = (parts[-1][0], False)
    return found


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Neighbours of one kind as one part."""
    kinds = [differs for _, differs in parts]
    for at, (piece, _) in enumerate(parts):
        if piece.isspace():
            around = kinds[at - 1 : at] + [differs for _, differs in parts[at + 1 : at + 2]]
            kinds[at] = len(around) == 2 and all(around)
    joined: list[Part] = []
    for (piece, _), differs in zip(parts, kinds, strict=True):
        if joined and joined[-1][1] == differs:
            joined[-1] = (joined[-1][0] + piece, differs)
        else:
            joined.append((piece, differs))
    return joined
