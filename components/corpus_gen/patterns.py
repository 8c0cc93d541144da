"""Paths with placeholders for spans: which files fit one, and what their names say.

The placeholders are those of TFX's ExampleGen. ``{SPAN}`` is a whole number, ``{SPAN:3}`` one of
three digits; instead of it a date, ``{YYYY}-{MM}-{DD}`` in any order and place, whose span is the
number of days since 1970-01-01. ``{VERSION}`` and ``{VERSION:2}`` tell several deliveries of one
span apart. A placeholder may stand in a path twice, and then means the same both times; the glob
signs ``*``, ``?``, ``[...]`` and ``**`` go with them.
"""

from __future__ import annotations

import difflib
import glob
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from components.errors import UserError

_DATE = ("YYYY", "MM", "DD")
_NUMBERS = ("SPAN", "VERSION")
_PLACEHOLDER = re.compile(r"\{(?P<name>[A-Za-z]+)(?::(?P<width>[^{}]*))?\}")
_GLOB = re.compile(r"\*\*/|\*+|\?|\[!?\]?[^\]]*\]|[^*?\[]+|\[")
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Found:
    """A file that fits a pattern.

    Attributes:
        path: the file.
        span: its span's number.
        name: what the span is called: the number, or the date.
        version: None where the pattern has none.
        written: what stands for each placeholder.
    """

    path: str
    span: int
    name: str
    version: int | None
    written: tuple[tuple[str, str], ...]


def is_pattern(path: str) -> bool:
    """Whether a path has a placeholder, right or wrong."""
    return any(_known(match["name"].upper()) for match in _PLACEHOLDER.finditer(path))


def has_date(path: str) -> bool:
    """Whether the spans of a pattern are dates."""
    return bool(names(path) & set(_DATE))


def names(path: str) -> set[str]:
    """The placeholders of a path."""
    return {match["name"] for match in _PLACEHOLDER.finditer(path)}


def number_of(value: int | str, dated: bool) -> int:
    """The number of the span that a configuration names by its number or its date.

    Raises:
        ValueError: it names none.
    """
    if dated:
        return (date.fromisoformat(str(value)) - _EPOCH).days
    if isinstance(value, str):
        raise ValueError(value)
    return value


def name_of(number: int, dated: bool) -> str:
    """What a span of this number is called."""
    return (_EPOCH + timedelta(days=number)).isoformat() if dated else str(number)


def wrong(path: str) -> str | None:
    """What is wrong with the placeholders of a path; None for nothing."""
    matches = list(_PLACEHOLDER.finditer(path))
    named = names(path)
    for match in matches:
        name, width = match["name"], match["width"]
        if not _known(name):
            near = difflib.get_close_matches(name.upper(), (*_NUMBERS, *_DATE), 1)
            meant = f"; did you mean {{{near[0]}}}?" if near else ""
            return f"there is no placeholder {match[0]}{meant}"
        if width is not None and (name in _DATE or not re.fullmatch("[1-9][0-9]?", width)):
            example = f"{{{name}}}" if name in _DATE else f"{{{name}:3}}"
            return f"{match[0]} has a width that cannot be; write {example}"
    dated = [name for name in _DATE if name in named]
    if dated and "SPAN" in named:
        return f"a span is a number or a date, not both {{SPAN}} and {{{dated[0]}}}"
    if dated and len(dated) < len(_DATE):
        missing = next(name for name in _DATE if name not in named)
        return f"a date needs {{YYYY}}, {{MM}} and {{DD}}; {{{missing}}} is missing"
    if named == {"VERSION"}:
        return "{VERSION} is of a span; add {SPAN}, or {YYYY}, {MM} and {DD}"
    for one, other in itertools.pairwise(matches):
        if one.end() == other.start() and not {one["name"], other["name"]} <= set(_DATE):
            return f"{one[0]}{other[0]} cannot be told apart; put a sign between them"
    return None


def meant(path: str) -> str | None:
    """The placeholder that braces in a path may have been meant as; None for none."""
    for braces in re.findall(r"\{[^{}/]*\}", path):
        known = [*(f"{{{name}}}" for name in (*_NUMBERS, *_DATE)), "{YYYY-MM-DD}"]
        if near := difflib.get_close_matches(braces.upper(), known, 1, 0.7):
            right = "{YYYY}-{MM}-{DD}" if "-" in near[0] else near[0]
            return f"{braces} is no placeholder; did you mean {right}?"
    return None


def find(root: str, path: str, key: str) -> list[Found]:
    """The files that fit a pattern, sorted by path.

    What fits but for the placeholders is no file of a span where letters stand in their place,
    and a mistake where a number has other digits than the pattern says.

    Args:
        root: the folder that the pattern is relative to; signs in it are no pattern.
        path: the pattern, of which nothing is ``wrong``.
        key: of the configuration, for errors.

    Raises:
        UserError: a number has the wrong width, or a date is none.
    """
    path = os.path.expanduser(path)
    fits = re.compile(_expression(path))
    looked = os.path.join(glob.escape(root), _PLACEHOLDER.sub("*", path))
    found = []
    for file in sorted(name for name in glob.glob(looked, recursive=True) if os.path.isfile(name)):
        shown = os.path.normpath(file) if os.path.isabs(path) else os.path.relpath(file, root)
        if match := fits.fullmatch(shown):
            _check_widths(path, match, file, key)
            found.append(_found(match, file, key))
    return found


def filled(path: str, found: Found) -> str:
    """A path with what stands in a file's name for its placeholders."""
    written = dict(found.written)
    return _PLACEHOLDER.sub(lambda match: written.get(match["name"], match[0]), path)


def _known(name: str) -> bool:
    return name in _NUMBERS or name in _DATE


def _expression(path: str) -> str:
    """The regular expression of a pattern; numbers may have any width in it."""
    parts: list[str] = []
    seen: set[str] = set()
    # The placeholders, and what stands before each and after the last one.
    texts = _PLACEHOLDER.split(path := os.path.normpath(path))[:: _PLACEHOLDER.groups + 1]
    for place, match in enumerate(_PLACEHOLDER.finditer(path)):
        parts += _literal(texts[place])
        name = match["name"]
        digits = {"YYYY": "[0-9]{4}", "MM": "[0-9]{2}", "DD": "[0-9]{2}"}.get(name, "[0-9]+")
        number = f"(?P={name})" if name in seen else f"(?P<{name}>{digits})"
        if name in _NUMBERS:  # a sign beside a number takes none of its digits
            before, after = _GLOB.findall(texts[place]), _GLOB.findall(texts[place + 1])
            number = "(?<![0-9])" * _is_sign(before[-1:]) + number
            number += "(?![0-9])" * _is_sign(after[:1])
        parts.append(number)
        seen.add(name)
    return "".join([*parts, *_literal(texts[-1])])


def _is_sign(found: list[str]) -> bool:
    """Whether this piece of a path, if there is one, stands for signs of any kind."""
    return bool(found) and (set(found[0]) in ({"*"}, {"?"}) or _is_set(found[0]))


def _is_set(sign: str) -> bool:
    return sign.startswith("[") and len(sign) > 1


def _literal(text: str) -> Iterator[str]:
    """Pieces of the regular expression of what stands between placeholders."""
    for sign in _GLOB.findall(text):
        if sign == "**/":
            yield "(?:.*/)?"
        elif set(sign) == {"*"}:
            yield "[^/]*"
        elif sign == "?":
            yield "[^/]"
        elif _is_set(sign):
            negated = sign.startswith("[!")
            inner = re.sub(r"([\\\[^&|~])", r"\\\1", sign[2 if negated else 1 : -1])
            yield f"[^{inner}]" if negated else f"[{inner}]"
        else:
            yield re.escape(sign)


def _check_widths(path: str, match: re.Match[str], file: str, key: str) -> None:
    for placeholder in _PLACEHOLDER.finditer(path):
        name, width = placeholder["name"], placeholder["width"]
        if width is not None and len(match[name]) != int(width):
            digits = "digit" if width == "1" else "digits"
            raise UserError(
                f"{file}: {match[name]} has not the {width} {digits} of {placeholder[0]}",
                where=key,
                remedy=f"Rename the file, or write {{{name}}} for numbers of any width.",
            )


def _found(match: re.Match[str], file: str, key: str) -> Found:
    written = match.groupdict()
    version = int(written["VERSION"]) if "VERSION" in written else None
    if "SPAN" in written:
        number = int(written["SPAN"])
        return Found(file, number, name_of(number, False), version, tuple(written.items()))
    try:
        day = date(*(int(written[name]) for name in _DATE))
    except ValueError as error:
        told = "-".join(written[name] for name in _DATE)
        raise UserError(
            f"{file}: {told} is no date: {error}",
            where=key,
            remedy="Rename the file, or take it away.",
        ) from None
    return Found(file, (day - _EPOCH).days, day.isoformat(), version, tuple(written.items()))
