"""The checks of single rows: what can be said of a text without looking at others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import ftfy

# C0 but for tab and ends of lines, C1, the soft hyphen, what is zero-width or sets a direction,
# the sign for what could not be decoded, and what has no meaning but by private agreement.
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffd\ue000-\uf8ff\U000e0001-\U000e007f\U000f0000-\U0010ffff]"
    # Between letters of Persian or Hindi, and between emoji, a joiner is orthography.
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
# The flags of England, Scotland and Wales are a black flag and a word in tags.
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a]+\U000e007f")
# What a wrong encoding makes of one letter are two or more beside each other, or a control of C1,
# or a capital before what was a hard space: ten times as quick as ftfy's own look.
_SUSPICIOUS = re.compile("[^\x00-\x7f]{2}|[\x80-\x9f]|[ÂÃ] ")

Sides = Sequence[Sequence[str]]


def find(inputs: Sides, references: Sides, checks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The names of the checks that find something in the texts of a row.

    Args:
        inputs: the texts of each feature of text that the model is given.
        references: those of each that is the right answer. Where a feature may have several, each
            is looked at, but the first alone counts for the ratio.
        checks: those that are on: ``empty_side``, ``length_ratio`` (characters of the longest side
            over those of the shortest, which counts as 1 where it is empty), ``too_long``,
            ``same_sides`` (an input that is a right answer), ``control_characters`` and
            ``encoding``.
    """
    sides = [texts for texts in (*inputs, *references) if texts]
    if not sides:
        return []
    lengths = [[len(text.strip()) for text in texts] for texts in sides]
    firsts = [of_side[0] for of_side in lengths]
    found = []
    if "empty_side" in checks and min(map(min, lengths)) == 0:
        found.append("empty_side")
    if "length_ratio" in checks and len(firsts) > 1:
        ratio = max(firsts) / max(1, min(firsts))
        if ratio > checks["length_ratio"]["ratio"]:
            found.append("length_ratio")
    if "too_long" in checks and max(map(max, lengths)) > checks["too_long"]["characters"]:
        found.append("too_long")
    if "same_sides" in checks and _same(inputs, references):
        found.append("same_sides")
    if "control_characters" in checks and any(controls(t) for texts in sides for t in texts):
        found.append("control_characters")
    if "encoding" in checks and any(repaired(t) != t for texts in sides for t in texts):
        found.append("encoding")
    return found


def controls(text: str) -> list[str]:
    """The characters of a text that control and show nothing, in their order."""
    if text.isascii() and text.isprintable():
        return []
    found = _CONTROL.findall(text)
    return _CONTROL.findall(_FLAG.sub("", text)) if found else found


def repaired(text: str) -> str:
    """The text as it was before it was decoded by the wrong encoding; or as it is."""
    if text.isascii() or not _SUSPICIOUS.search(text):
        return text
    return ftfy.fix_encoding(text)


def _same(inputs: Sides, references: Sides) -> bool:
    """Whether an input is a right answer; numbers and signs alone may well be."""
    given = {text.strip() for texts in inputs for text in texts}
    return any(
        text.strip() in given and any(map(str.isalpha, text))
        for texts in references
        for text in texts
    )
