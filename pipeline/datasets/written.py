"""One date, time, number or amount as a locale writes it, with its plain form and alignment.

The alignment comes from the way a row is made: a CLDR pattern is filled in field by field, so the
place of each part in the text is known and not guessed.
"""

from __future__ import annotations

import datetime as dt
import re
import string
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pipeline.datasets.locales import (
    Style,
    currency_pattern,
    date_pattern,
    decimal_pattern,
    locale,
    symbol,
    time_pattern,
)

Span = tuple[int, int]

NATIVE = {"arab": "٠١٢٣٤٥٦٧٨٩", "deva": "०१२३४५६७८९"}
FIELDS = {
    **dict.fromkeys("y", "year"),
    **dict.fromkeys("ML", "month"),
    **dict.fromkeys("d", "day"),
    **dict.fromkeys("hHkK", "hour"),
    **dict.fromkeys("m", "minute"),
    **dict.fromkeys("s", "second"),
    # "2:05 PM" gives 14 from both the 2 and the PM.
    **dict.fromkeys("abB", "hour"),
}
ISO = {"year": (0, 4), "month": (5, 7), "day": (8, 10), "hour": (0, 2), "minute": (3, 5)}
ISO["second"] = (6, 8)
MARKS = "\u200e\u200f\u061c"


@dataclass(frozen=True)
class Part:
    """A piece of the source and the piece of the target that comes from it, in characters."""

    name: str
    source: Span
    target: Span


@dataclass(frozen=True)
class Written:
    """A text as a locale writes it, and its plain form."""

    source: str
    target: str
    parts: tuple[Part, ...]


def write_date(style: Style, name: str, value: dt.date, native: bool = False) -> Written:
    """A date; the target is ISO 8601: ``2026-11-20``."""
    pattern = date_pattern(style.tag, name)
    source, parts = _fill(style, pattern, dt.datetime(value.year, value.month, value.day), native)
    return Written(source, value.isoformat(), parts)


def write_time(style: Style, name: str, value: dt.time, native: bool = False) -> Written | None:
    """A time; the target is ``14:05``, or ``14:05:30`` where the pattern has seconds.

    What the pattern does not write (the minutes of ``14 Uhr``) is taken to be zero. Gives None
    where the text could be read in two ways: ``2:05`` with neither a leading zero nor am/pm.
    """
    pattern = time_pattern(style.tag, name)
    bare = re.sub("'[^']*'", "", pattern)
    if re.search("(?<!H)H:", bare) and 1 <= value.hour <= 12:
        return None
    value = value.replace(
        minute=value.minute if "m" in bare else 0, second=value.second if "s" in bare else 0
    )
    moment = dt.datetime.combine(dt.date(2000, 1, 1), value)
    source, parts = _fill(style, pattern, moment, native)
    return Written(source, value.isoformat("seconds" if "s" in bare else "minutes"), parts)


def join(style: Style, pattern: str, date: Written, time: Written) -> Written:
    """A date and a time in one text; the target is ``2026-11-20T14:05``."""
    pattern = pattern.replace("'", "")
    if "}{" in pattern and date.source[-1].isdigit():
        pattern = style.joins[0]
    before, between = pattern.split("{1}")[0], pattern.split("{1}")[1].split("{0}")[0]
    head = before + date.source + between
    later = (len(head), len(date.target) + 1)
    parts = (*_shift(date.parts, (len(before), 0)), *_shift(time.parts, later))
    return Written(head + time.source, f"{date.target}T{time.target}", parts)


def write_number(style: Style, value: Decimal, grouped: bool, native: bool = False) -> Written:
    """A number with the decimals that ``value`` has; the target is plain: ``-1234.50``."""
    from babel.numbers import format_decimal

    grouped = grouped and abs(value) >= 10 ** (style.group_from - 1)
    pattern = decimal_pattern(style.tag, _places(value), grouped)
    system = style.digits if native and style.digits else "latn"
    text = format_decimal(value, pattern, style.tag, numbering_system=system)
    source, target = _native(style, text, native), format(value, "f")
    return Written(source, target, _number_parts(source, target))


def write_amount(
    style: Style, value: Decimal, currency: str, form: str, native: bool = False
) -> Written | None:
    """An amount of money; the target is plain: ``1234.50 EUR``.

    Args:
        form: ``symbol``, ``code`` or ``name``: how the currency is written. Gives None where
            the locale has no symbol of its own for the currency.
    """
    from babel.numbers import format_currency

    if form == "symbol" and symbol(style.tag, currency) is None:
        return None
    places = _places(value)
    if form == "name":
        pattern = decimal_pattern(style.tag, places)
    else:
        pattern = currency_pattern(style.tag, places, code=form == "code")
    text = format_currency(
        value,
        currency,
        pattern,
        style.tag,
        currency_digits=False,
        format_type="name" if form == "name" else "standard",
        group_separator=value >= 10 ** (style.group_from - 1),
        numbering_system=style.digits if native and style.digits else "latn",
    )
    source, plain = _native(style, text, native), format(value, "f")
    numbers = _number_parts(source, plain)
    first, last = numbers[0].source[0], numbers[-1].source[1]
    # The currency is what stands beside the number, on one of its sides.
    span = _strip(source, 0, first) or _strip(source, last, len(source)) or (0, 0)
    unit = Part("currency", span, (len(plain) + 1, len(plain) + 4))
    return Written(source, f"{plain} {currency}", (*numbers, unit))


def write_words(style: Style, value: int) -> Written:
    """A whole number in words; the target is its digits."""
    from num2words import num2words

    source, target = num2words(value, lang=style.words), str(value)
    return Written(source, target, (Part("number", (0, len(source)), (0, len(target))),))


def _fill(
    style: Style, pattern: str, value: dt.datetime, native: bool
) -> tuple[str, tuple[Part, ...]]:
    from babel.dates import DateTimeFormat, tokenize_pattern

    fields = DateTimeFormat(value, locale(style.tag))
    text, parts = "", []
    token: Any  # the text between fields, or a field's letter and how often it stands there
    for kind, token in tokenize_pattern(pattern):
        piece = token if kind == "chars" else fields[token[0] * token[1]]
        name = None if kind == "chars" else FIELDS.get(token[0])
        if name:
            parts.append(Part(name, (len(text), len(text) + len(piece)), ISO[name]))
        text += piece
    return _native(style, text, native), tuple(parts)


def _native(style: Style, text: str, native: bool) -> str:
    if not (native and style.digits):
        return text
    return text.translate(str.maketrans(string.digits, NATIVE[style.digits]))


def _places(value: Decimal) -> int:
    return max(0, -int(value.as_tuple().exponent))


def _number_parts(source: str, target: str) -> tuple[Part, ...]:
    """Aligns digit with digit, in order, and the decimal separator with the point."""
    digits = [i for i, character in enumerate(source) if character.isdecimal()]
    parts: list[Part] = []
    rest = iter(digits)
    for position, character in enumerate(target):
        if character.isdecimal():
            place = next(rest)
            parts.append(Part("digit", (place, place + 1), (position, position + 1)))
        elif character == "." and parts:
            place = parts[-1].source[1]
            parts.append(Part("point", (place, place + 1), (position, position + 1)))
    return tuple(parts)


def _strip(text: str, start: int, end: int) -> Span | None:
    """The span without the spaces and the direction marks around it, or None if none is left."""
    piece = text[start:end]
    kept = piece.strip(string.whitespace + "\u00a0\u202f" + MARKS)
    if not kept:
        return None
    start += piece.index(kept)
    return start, start + len(kept)


def _shift(parts: tuple[Part, ...], by: tuple[int, int]) -> tuple[Part, ...]:
    source, target = by
    return tuple(
        replace(
            part,
            source=(part.source[0] + source, part.source[1] + source),
            target=(part.target[0] + target, part.target[1] + target),
        )
        for part in parts
    )
