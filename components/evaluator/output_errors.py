"""Kinds of errors in an output text, found without a model in its references and its source.

The checks are simple on purpose: a kind says where to read, not that the output is wrong.
"""

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import regex

from regard.components.data.text_analysis import split_words
from regard.models.vocabulary import UNSPACED

# An omission or an addition has at least as many words; signs of scripts without spaces.
_MIN_WORDS, _MIN_SIGNS = 3, 6
_MAX_RATIO = 0.7  # of the lengths of a text with an omission or an addition and of another
_MAX_PHRASE_WORDS = 4  # of a phrase that is repeated at once
_MAX_WORDS = 400  # of a text; comparing takes a time that is quadratic in the worst case
_GROUP_DIGITS = 3  # of thousands
_NUMBER = re.compile(r"\d+(?:[.,:’'\u00a0\u202f]?\d+)*")
_NAME = re.compile(r"\b[^\W\d_][\w’'-]*")
_SIGN = regex.compile(f"[{UNSPACED}]")
_ENDS = {"。": ".", "．": ".", "！": "!", "？": "?", "।": ".", "۔": ".", "؟": "?", "…": "."}
_BRACKETS = "()[]{}（）「」『』《》"


def _normalize_number(text: str) -> str:
    """Return a number without separators of thousands, and with a point before the decimals.

    Three digits after the last separator are thousands: ``1.250`` and ``1,250`` are equal, and
    ``1,5`` is not ``15``.
    """
    digits = "".join(str(unicodedata.digit(sign, sign)) for sign in text)
    *groups, last = re.split(r"\D", digits)
    if not groups or len(last) == _GROUP_DIGITS:
        return "".join([*groups, last])
    decimals = last.rstrip("0")
    return "".join(groups) + (f".{decimals}" if decimals else "")


@dataclass(frozen=True)
class _Words:
    """A text, its words in lower case, and what they contain."""

    text: str

    @cached_property
    def words(self) -> list[str]:
        return [word.casefold() for word in split_words(self.text)][:_MAX_WORDS]

    @cached_property
    def numbers(self) -> Counter[str]:
        """Numbers in one notation, because languages separate thousands and decimals otherwise."""
        return Counter(map(_normalize_number, _NUMBER.findall(self.text)))

    @cached_property
    def names(self) -> set[str]:
        """Words with an upper-case letter."""
        return {word for word in _NAME.findall(self.text) if word != word.lower()}

    @cached_property
    def repeated(self) -> set[tuple[str, ...]]:
        """Phrases that occur twice in a row."""
        phrases = set()
        for length in range(1, _MAX_PHRASE_WORDS + 1):
            for start in range(len(self.words) - 2 * length + 1):
                phrase = self.words[start : start + length]
                follows = self.words[start + length : start + 2 * length] == phrase
                if follows and any(letter.isalpha() for word in phrase for letter in word):
                    phrases.add(tuple(phrase))
        return phrases

    @cached_property
    def end(self) -> str:
        """The sign at the end of the sentence; empty if it is a letter or a digit."""
        sign = self.text.rstrip(" \"'”’»)")[-1:]
        sign = _ENDS.get(sign, sign)
        return sign if sign and unicodedata.category(sign).startswith("P") else ""

    @cached_property
    def brackets(self) -> Counter[str]:
        return Counter(c for c in self.text if c in _BRACKETS)


@dataclass(frozen=True)
class _Case:
    output: _Words
    references: Sequence[_Words]
    source: _Words

    @cached_property
    def changes(self) -> list[tuple[list[str], list[str]]]:
        """Words of the closest reference and of the output that differ, in pairs of runs."""
        closest: list[tuple[list[str], list[str]]] = []
        best = -1.0
        for reference in self.references:
            first, second = reference.words, self.output.words
            matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
            if matcher.ratio() > best:
                best = matcher.ratio()
                closest = [
                    (first[a:b], second[c:d])
                    for kind, a, b, c, d in matcher.get_opcodes()
                    if kind != "equal"
                ]
        return closest

    @cached_property
    def sides(self) -> tuple[list[str], list[str]]:
        """The words of the closest reference in length, and those of the output."""
        output = self.output.words
        references = [text.words for text in self.references]
        return min(references, key=lambda words: abs(len(words) - len(output))), output


def _has_number_error(case: _Case) -> bool:
    """A number that source and reference share is missing, or one that neither has is added.

    Without a source, a number of the reference must not be missing.
    """
    output, source = case.output.numbers, case.source.numbers
    for reference in case.references:
        shared = reference.numbers & source if case.source.text else reference.numbers
        missing = shared - output
        added = output - (reference.numbers | source)
        if not missing and not added:
            return False
    return True


def _has_name_error(case: _Case) -> bool:
    """A word with an upper-case letter that source and references share is missing."""
    shared = set.intersection(case.source.names, *(text.names for text in case.references))
    words = [word.casefold() for word in _NAME.findall(case.output.text)]
    # A language may add an ending.
    return any(not any(word.startswith(name.casefold()) for word in words) for name in shared)


def _is_long(words: Sequence[str]) -> bool:
    signs = sum(bool(_SIGN.fullmatch(word)) for word in words)
    return len(words) - signs >= _MIN_WORDS or signs >= _MIN_SIGNS


def _has_omission(case: _Case) -> bool:
    """The closest reference has a run of words that the output lacks, or is much longer."""
    reference, output = case.sides
    is_short = len(output) < _MAX_RATIO * len(reference) and _is_long(reference[len(output) :])
    return is_short or any(_is_long(first[len(second) :]) for first, second in case.changes)


def _has_addition(case: _Case) -> bool:
    """The output has a run of words that the closest reference lacks, or is much longer."""
    reference, output = case.sides
    is_long = len(reference) < _MAX_RATIO * len(output) and _is_long(output[len(reference) :])
    return is_long or any(_is_long(second[len(first) :]) for first, second in case.changes)


def _has_repetition(case: _Case) -> bool:
    """A phrase occurs twice in a row, and in no reference and not in the source."""
    allowed = case.source.repeated.union(*(text.repeated for text in case.references))
    return bool(case.output.repeated - allowed)


def _has_punctuation_error(case: _Case) -> bool:
    """The sign at the end or the brackets are those of no reference."""
    output = case.output
    return all(
        output.end != text.end or output.brackets != text.brackets for text in case.references
    )


def _is_untranslated(case: _Case) -> bool:
    """A run of words of the source, or half of the output, is a copy that no reference has."""
    source = " ".join(["", *case.source.words, ""])
    known = set().union(*(text.words for text in case.references))
    run: list[str] = []
    copied = 0
    for word in [*case.output.words, ""]:
        is_copy = bool(word) and word not in known and f" {word} " in source
        copied += is_copy
        run = [*run, word] if is_copy and f" {' '.join([*run, word])} " in source else []
        if _is_long(run):
            return True
    return copied >= 2 and 2 * copied >= len(case.output.words)


# The checks by the name of the kind, in the order in which a reader wants them.
ERROR_KINDS: Mapping[str, Callable[[_Case], bool]] = {
    "number": _has_number_error,
    "name": _has_name_error,
    "omission": _has_omission,
    "addition": _has_addition,
    "untranslated": _is_untranslated,
    "repetition": _has_repetition,
    "punctuation": _has_punctuation_error,
}


def find_errors(
    output: str, references: Sequence[str], source: str, kinds: Set[str] = frozenset(ERROR_KINDS)
) -> list[str]:
    """Return the kinds of errors that an output may have, in the order of `ERROR_KINDS`.

    Args:
        output: the output.
        references: at least one reference.
        source: the input text; empty if the model has none.
        kinds: the kinds to look for; copies of the source are no error in a summary.
    """
    case = _Case(_Words(output), [_Words(text) for text in references], _Words(source))
    return [name for name, check in ERROR_KINDS.items() if name in kinds and check(case)]
