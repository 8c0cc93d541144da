"""Paths with placeholders for spans: which files match one, and what their names mean.

The placeholders are those of TFX's ExampleGen. ``{SPAN}`` is a whole number and ``{SPAN:3}`` one of
three digits. A date, ``{YYYY}-{MM}-{DD}`` in any order and position, can replace it; its span is
the number of days since 1970-01-01. ``{VERSION}`` and ``{VERSION:2}`` distinguish several
deliveries of one span. A placeholder that occurs twice in a path has the same value both times. The
glob characters ``*``, ``?``, ``[...]`` and ``**`` are allowed as well.
"""

import glob
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from regard.core.errors import DataError, UserError
from regard.core.suggestions import closest_matches, did_you_mean

_DATE = ("YYYY", "MM", "DD")
_NUMBERS = ("SPAN", "VERSION")
_PLACEHOLDER = re.compile(r"\{(?P<name>[A-Za-z]+)(?::(?P<width>[^{}]*))?\}")
_GLOB_TOKEN = re.compile(r"\*\*/|\*+|\?|\[!?\]?[^\]]*\]|[^*?\[]+|\[")
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class SpanFile:
    """A file that matches a pattern.

    Attributes:
        path: the file.
        span: the number of its span.
        name: the name of the span: the number or the date.
        version: None if the pattern has no ``{VERSION}``.
        values: the text that each placeholder stands for.
    """

    path: str
    span: int
    name: str
    version: int | None
    values: tuple[tuple[str, str], ...]


def is_pattern(path: str) -> bool:
    """Return whether a path has a placeholder, correct or not."""
    return any(_is_placeholder(match["name"].upper()) for match in _PLACEHOLDER.finditer(path))


def has_date(path: str) -> bool:
    """Return whether the spans of a pattern are dates."""
    return bool(placeholders(path) & set(_DATE))


def placeholders(path: str) -> set[str]:
    """Return the names of the placeholders of a path."""
    return {match["name"] for match in _PLACEHOLDER.finditer(path)}


def span_number(value: int | str, dated: bool) -> int:
    """Return the number of a span that a configuration gives by number or date.

    Raises:
        ValueError: the value is neither.
    """
    if dated:
        return (date.fromisoformat(str(value)) - _EPOCH).days
    if isinstance(value, str):
        raise ValueError(value)
    return value


def span_name(number: int, dated: bool) -> str:
    """Return the name of a span: its number or its date."""
    return (_EPOCH + timedelta(days=number)).isoformat() if dated else str(number)


def pattern_error(path: str) -> str | None:
    """Return what is wrong with the placeholders of a path; None if they are correct."""
    matches = list(_PLACEHOLDER.finditer(path))
    names = placeholders(path)
    for match in matches:
        name, width = match["name"], match["width"]
        if not _is_placeholder(name):
            known = [f"{{{name}}}" for name in (*_NUMBERS, *_DATE)]
            return f"unknown placeholder {match[0]}. {did_you_mean(match[0], known)}".strip()
        if width is not None and (name in _DATE or not re.fullmatch("[1-9][0-9]?", width)):
            example = f"{{{name}}}" if name in _DATE else f"{{{name}:3}}"
            return f"{match[0]} has an invalid width; write {example}"
    dated = [name for name in _DATE if name in names]
    if dated and "SPAN" in names:
        return f"a span is a number or a date, not both {{SPAN}} and {{{dated[0]}}}"
    if dated and len(dated) < len(_DATE):
        missing = next(name for name in _DATE if name not in names)
        return f"a date needs {{YYYY}}, {{MM}} and {{DD}}; {{{missing}}} is missing"
    if names == {"VERSION"}:
        return "{VERSION} needs a span; add {SPAN}, or {YYYY}, {MM} and {DD}"
    for left, right in itertools.pairwise(matches):
        if left.end() == right.start() and not {left["name"], right["name"]} <= set(_DATE):
            return f"{left[0]}{right[0]} is ambiguous; put a separator between them"
    return None


def suggest_placeholder(path: str) -> str | None:
    """Return a hint if braces in a path look like a misspelt placeholder."""
    for braces in re.findall(r"\{[^{}/]*\}", path):
        known = [*(f"{{{name}}}" for name in (*_NUMBERS, *_DATE)), "{YYYY-MM-DD}"]
        if similar := closest_matches(braces, known, cutoff=0.7):
            correct = "{YYYY}-{MM}-{DD}" if "-" in similar[0] else similar[0]
            return f"{braces} is not a placeholder. Did you mean {correct}?"
    return None


def find_span_files(root: str, pattern: str, key: str) -> list[SpanFile]:
    """Return the files that match a pattern, sorted by path.

    A file with letters in place of a number does not match; one with the wrong number of digits is
    an error, also in a date: ``2026-1-29`` is not left out in favor of ``2026-01-30``.

    Args:
        root: the folder that the pattern is relative to; glob characters in it have no meaning.
        pattern: a pattern without ``pattern_error``.
        key: the key of the configuration, for errors.

    Raises:
        UserError: a number has the wrong width, or a date does not exist.
    """
    pattern = os.path.expanduser(pattern)
    expression, any_width = (re.compile(to_expression(pattern, dates)) for dates in (True, False))
    globbed = os.path.join(glob.escape(root), _PLACEHOLDER.sub("*", pattern))
    matching = []
    for path in sorted(glob.glob(globbed, recursive=True)):
        if os.path.isdir(path):
            continue
        is_absolute = os.path.isabs(pattern)
        relative = os.path.normpath(path) if is_absolute else os.path.relpath(path, root)
        if match := expression.fullmatch(relative):
            _check_widths(pattern, match, path, key)
            matching.append(_span_file(match, path, key))
        elif any_width.fullmatch(relative):
            message = (
                f"{path}: the date does not have four digits of a year and two of month and day"
            )
            remedy = "Rename the file with leading zeros, for example 2026-01-09, or remove it."
            raise UserError(message, where=key, remedy=remedy)
    return matching


def fill_placeholders(path: str, file: SpanFile) -> str:
    """Replace the placeholders of a path by their values in the name of a file."""
    values = dict(file.values)
    return _PLACEHOLDER.sub(lambda match: values.get(match["name"], match[0]), path)


def _is_placeholder(name: str) -> bool:
    return name in _NUMBERS or name in _DATE


def to_expression(path: str, fixed_dates: bool = True) -> str:
    """Return the regular expression of a pattern; numbers in it have any width.

    Args:
        path: the pattern.
        fixed_dates: whether years have four digits, and months and days two; otherwise they may
            have any width too, unless a glob character is next to them.
    """
    expressions: list[str] = []
    repeated: set[str] = set()
    # The texts before each placeholder and after the last one.
    texts = _PLACEHOLDER.split(path := os.path.normpath(path))[:: _PLACEHOLDER.groups + 1]
    for index, match in enumerate(_PLACEHOLDER.finditer(path)):
        expressions += _glob_to_expression(texts[index])
        name = match["name"]
        before, after = (_GLOB_TOKEN.findall(texts[index + step]) for step in (0, 1))
        is_open = _is_wildcard(before[-1:]), _is_wildcard(after[:1])
        has_width = name in _DATE and (fixed_dates or any(is_open))
        digits = f"[0-9]{{{len(name)}}}" if has_width else "[0-9]+"
        number = f"(?P={name})" if name in repeated else f"(?P<{name}>{digits})"
        if name in _NUMBERS:  # an adjacent glob character matches none of its digits
            number = "(?<![0-9])" * is_open[0] + number + "(?![0-9])" * is_open[1]
        expressions.append(number)
        repeated.add(name)
    return "".join([*expressions, *_glob_to_expression(texts[-1])])


def _is_wildcard(tokens: list[str]) -> bool:
    """Return whether the adjacent token of a path, if there is one, matches any characters."""
    return bool(tokens) and (set(tokens[0]) in ({"*"}, {"?"}) or _is_character_set(tokens[0]))


def _is_character_set(token: str) -> bool:
    return token.startswith("[") and len(token) > 1


def _glob_to_expression(text: str) -> Iterator[str]:
    for token in _GLOB_TOKEN.findall(text):
        if token == "**/":
            yield "(?:.*/)?"
        elif set(token) == {"*"}:
            yield "[^/]*"
        elif token == "?":
            yield "[^/]"
        elif _is_character_set(token):
            negated = token.startswith("[!")
            inner = re.sub(r"([\\\[^&|~])", r"\\\1", token[2 if negated else 1 : -1])
            yield f"[^{inner}]" if negated else f"[{inner}]"
        else:
            yield re.escape(token)


def _check_widths(pattern: str, match: re.Match[str], path: str, key: str) -> None:
    for placeholder in _PLACEHOLDER.finditer(pattern):
        name, width = placeholder["name"], placeholder["width"]
        if width is not None and len(match[name]) != int(width):
            digits = "digit" if width == "1" else "digits"
            raise DataError(
                f"{path}: {match[name]} does not have the {width} {digits} of {placeholder[0]}",
                where=key,
                remedy=f"Rename the file, or write {{{name}}} for numbers of any width.",
            )


def _span_file(match: re.Match[str], path: str, key: str) -> SpanFile:
    values = match.groupdict()
    version = int(values["VERSION"]) if "VERSION" in values else None
    if "SPAN" in values:
        number = int(values["SPAN"])
        return SpanFile(path, number, span_name(number, False), version, tuple(values.items()))
    try:
        day = date(*(int(values[name]) for name in _DATE))
    except ValueError as error:
        text = "-".join(values[name] for name in _DATE)
        message = f"{path}: {text} is not a date: {error}"
        raise DataError(message, where=key, remedy="Rename or remove the file.") from None
    return SpanFile(path, (day - _EPOCH).days, day.isoformat(), version, tuple(values.items()))
