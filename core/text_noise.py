"""Errors and habits of writers as changes of a text: case, accents, punctuation, typing, spaces.

Training and evaluation use the same functions. A change depends on the text, its kind, the options
and a key of integers, and on nothing else, so it can be repeated in any order and any process.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from regard.core.characters import is_blank, limit_marks
from regard.core.features import Feature

# The rows of letters of each layout, from the top. A row begins half a key right of the one above.
LAYOUTS = {
    "qwerty": ("qwertyuiop", "asdfghjkl", "zxcvbnm"),
    "qwertz": ("qwertzuiopü", "asdfghjklöä", "yxcvbnm"),
    "azerty": ("azertyuiop", "qsdfghjklm", "wxcvbn"),
    "jcuken": ("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю"),
}
_ROW_OFFSET = 0.5
_MAX_DISTANCE = 1.2  # in keys: those to the left and right, and two in each row above and below

_LETTERS_WITH_STROKE = str.maketrans("đĐłŁøØ", "dDlLoO")  # they have no decomposition
_SENTENCE_MARKS = re.compile(r"(?<![^\W_])[.,!?;:]|[.,!?;:](?![^\W_])|[…。、！？；：，؟،؛।]")
_SPACES = re.compile(r"(?<= ) +")
_WORDS = re.compile(r"\S+")


@dataclass(frozen=True)
class NoiseOptions:
    """What the changes depend on.

    Attributes:
        layout: the keyboard of typing errors, a key of ``LAYOUTS``.
        rate: the probability that a word has an error; for typing errors and spaces.
        symbols: strings that no change touches, such as the tags of a model.
    """

    layout: str = "qwerty"
    rate: float = 0.2
    symbols: tuple[str, ...] = ()


Change = Callable[[str, NoiseOptions, np.random.Generator], str]


def kind_label(kind: str) -> str:
    """Return a key of ``KINDS`` in words, such as ``missing accents``."""
    return kind.replace("_", " ")


def noisy_features(features: Iterable[Feature]) -> list[str]:
    """Return the text inputs that may change: those without parts that a reference names."""
    features = list(features)
    containers = {feature.part_of for feature in features}
    return [
        feature.name
        for feature in features
        if feature.role == "input" and feature.kind.is_text and feature.name not in containers
    ]


def draw_kind(probabilities: Mapping[str, float], key: Sequence[int]) -> str | None:
    """Return the kind of change of a text; None: it stays clean.

    Args:
        probabilities: the probability of each kind, together at most 1.
        key: integers from 0 that seed the choice.
    """
    value = np.random.default_rng(key).random()
    for kind, share in probabilities.items():
        if value < share:
            return kind
        value -= share
    return None


def change_text(text: str, kind: str, options: NoiseOptions, key: Sequence[int]) -> str:
    """Return a text with a change; one that would become blank stays as it is.

    Args:
        text: the text.
        kind: the change, a key of ``KINDS``.
        options: what the change depends on.
        key: integers from 0 that seed what is random, for example a seed, the epoch and the row.
    """
    change, random = KINDS[kind], np.random.default_rng(key)
    # Every second part is a symbol.
    parts = _symbol_pattern(options.symbols).split(text) if options.symbols else [text]
    for number in range(0, len(parts), 2):
        parts[number] = change(parts[number], options, random)
    changed = "".join(parts)
    if text == text.strip(" "):  # a mark that is missing may have had a space on its other side
        changed = changed.strip(" ")
    return text if is_blank(changed) else changed


@functools.cache
def _symbol_pattern(symbols: tuple[str, ...]) -> re.Pattern[str]:
    # Of two symbols, one of which begins with the other, the longer one counts.
    ordered = sorted(symbols, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, ordered))})")


def _upper_case(text: str, options: NoiseOptions, random: np.random.Generator) -> str:
    return text.upper()


def _title_case(text: str, options: NoiseOptions, random: np.random.Generator) -> str:
    """Begin each word with a capital letter; its other letters stay."""
    return _WORDS.sub(lambda match: match[0][0].title() + match[0][1:], text)


def _missing_accents(text: str, options: NoiseOptions, random: np.random.Generator) -> str:
    """Remove the marks on Latin and Greek letters; in other scripts a mark makes another letter."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", limit_marks(text))
    letters, has_accents = [], False
    for character in decomposed:
        if not unicodedata.combining(character):
            has_accents = unicodedata.name(character, "").startswith(("LATIN ", "GREEK "))
            letters.append(character)
        elif not has_accents:
            letters.append(character)
    if len(letters) < len(decomposed):
        text = unicodedata.normalize("NFC", "".join(letters))
    return text.translate(_LETTERS_WITH_STROKE)


def _missing_punctuation(text: str, options: NoiseOptions, random: np.random.Generator) -> str:
    """Remove punctuation marks, except those between letters or digits, as in "3.5" and "don't"."""
    remaining = [
        character
        for index, character in enumerate(text)
        if not unicodedata.category(character).startswith("P")
        or (text[index - 1 : index].isalnum() and text[index + 1 : index + 2].isalnum())
    ]
    joined = "".join(remaining)
    return _SPACES.sub("", joined) if joined != text else text


def _doubled_punctuation(text: str, options: NoiseOptions, random: np.random.Generator) -> str:
    """Double the marks of sentences, except those between letters or digits."""
    return _SENTENCE_MARKS.sub(lambda match: 2 * match[0], text)


def _typing_errors(text: str, options: NoiseOptions, random: np.random.Generator) -> str:
    """Replace a letter of some words by that of a neighbouring key.

    See Belinkov and Bisk 2018, "Synthetic and Natural Noise Both Break Neural Machine Translation",
    §4 (keyboard typos).
    """
    neighbours = keyboard_neighbours(options.layout)

    def mistype(match: re.Match[str]) -> str:
        word = match[0]
        keys = [index for index, letter in enumerate(word) if letter.lower() in neighbours]
        if random.random() >= options.rate or not keys:
            return word
        index = keys[random.integers(len(keys))]
        choices = neighbours[word[index].lower()]
        letter = choices[random.integers(len(choices))]
        letter = letter.upper() if word[index].isupper() else letter
        return word[:index] + letter + word[index + 1 :]

    return _WORDS.sub(mistype, text)


def _spaces(text: str, options: NoiseOptions, random: np.random.Generator) -> str:
    """Omit the space after some words, and insert one into others; both are equally probable."""
    words = text.split(" ")
    result = []
    for number, word in enumerate(words):
        separator = " " if number < len(words) - 1 else ""
        if word and random.random() < options.rate:
            if random.random() < 0.5:
                separator = ""
            elif len(word) > 1:
                index = 1 + random.integers(len(word) - 1)
                word = f"{word[:index]} {word[index:]}"
        result.append(word + separator)
    return "".join(result)


@functools.cache
def keyboard_neighbours(layout: str) -> dict[str, str]:
    """Return the letters on the keys around that of each letter.

    Args:
        layout: a key of ``LAYOUTS``.
    """
    places = {
        letter: (float(row), column + _ROW_OFFSET * row)
        for row, letters in enumerate(LAYOUTS[layout])
        for column, letter in enumerate(letters)
    }
    return {
        letter: "".join(other for other in places if _distance(places, letter, other) > 0)
        for letter in places
    }


def _distance(places: dict[str, tuple[float, float]], letter: str, other: str) -> float:
    """Return the distance of two keys in keys; 0 if they are no neighbours."""
    distance = float(np.hypot(*np.subtract(places[letter], places[other])))
    return distance if distance < _MAX_DISTANCE else 0.0


KINDS: dict[str, Change] = {
    "upper_case": _upper_case,
    "title_case": _title_case,
    "missing_accents": _missing_accents,
    "missing_punctuation": _missing_punctuation,
    "doubled_punctuation": _doubled_punctuation,
    "typing_errors": _typing_errors,
    "spaces": _spaces,
}
