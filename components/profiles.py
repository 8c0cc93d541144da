"""What the training split looks like, as data: its words and its lengths.

ExampleValidator writes it as ``profile.json`` beside its findings and the Pusher keeps it with the
model, so that later data can be held against it. Here is what all its readers need; without
TensorFlow.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import regex

from components.errors import UserError
from models.tasks.features import Feature
from models.unspaced import UNSPACED

FILE = "profile.json"
KEPT = 50_000  # words of a feature; the rest is only counted

# Upper bounds of lengths: the first to 5, the last to 5,000, each a quarter longer than the one
# before. What is longer than the last is counted beside them.
BOUNDS = tuple(round(5 * 1000 ** (step / 30)) for step in range(31))

_LETTER = rf"[[\w\p{{N}}]--[{UNSPACED}]]"
_WORD = regex.compile(rf"[{UNSPACED}]\p{{M}}*|{_LETTER}+(?:['’]{_LETTER}+)*", regex.VERSION1)
# Three times as fast, where letters carry no marks of their own and words have spaces between.
_PLAIN_WORD = re.compile(r"\w+(?:['’]\w+)*")
_NOT_PLAIN = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0590-\u200f\u203f\u2040\u2054\u2080-\u20ff\u2460-\u24ff"
    "\u2c00-\U0010ffff]"
)

_OF_WORDS = {"total": int, "distinct": int, "once": int, "words": dict, "complete": bool}
_OF_LENGTHS = {"bounds": list, "counts": list}


def words(text: str) -> list[str]:
    """The words of a text in the form NFC, without punctuation.

    Scripts that put no spaces between words (Chinese, Japanese, Thai and their neighbours) give
    their characters.
    """
    if text.isascii():
        return _PLAIN_WORD.findall(text)
    text = unicodedata.normalize("NFC", text)
    if not _NOT_PLAIN.search(text):
        return _PLAIN_WORD.findall(text)
    return _WORD.findall(text)


def histogram(lengths: Mapping[int, int]) -> list[int]:
    """How many lengths are up to each of ``BOUNDS`` and above the one before, then how many longer.

    Args:
        lengths: how often there is each length.
    """
    counts = [0] * (len(BOUNDS) + 1)
    for length, count in lengths.items():
        counts[bisect_left(BOUNDS, length)] += count
    return counts


def unit(feature: Feature) -> str | None:
    """What the length of a feature's values counts; None where there is no length to speak of."""
    if feature.kind == "points":
        return "point"
    return "character" if feature.tokenized else None


def read(path: str | os.PathLike[str], remedy: str) -> dict[str, Any]:
    """The profile in a file.

    Args:
        path: of the file.
        remedy: what the user can do where there is no profile in it.

    Raises:
        UserError: it cannot be read, or is none.
    """
    try:
        with open(path, encoding="utf-8") as file:
            profile = json.load(file)
    except (OSError, ValueError) as error:
        told = f"the profile cannot be read: {error}"
        raise UserError(told, where=str(path), remedy=remedy) from error
    features = profile.get("features") if isinstance(profile, dict) else None
    if not isinstance(features, dict) or not all(map(_is_entry, features.values())):
        told = "the file is no profile of a training split"
        raise UserError(told, where=str(path), remedy=remedy)
    return profile


def _is_entry(entry: Any) -> bool:
    """Whether it is what a profile holds of a feature: lengths, and of text also words."""
    if not isinstance(entry, dict) or not _holds(entry.get("lengths"), _OF_LENGTHS):
        return False
    return entry.keys() == {"lengths"} or _holds(entry, _OF_WORDS)


def _holds(entry: Any, kinds: Mapping[str, type]) -> bool:
    return isinstance(entry, dict) and all(
        isinstance(entry.get(key), kind) for key, kind in kinds.items()
    )
