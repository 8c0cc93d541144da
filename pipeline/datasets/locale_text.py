"""Dates, times, numbers and amounts as a locale writes them, aligned with their normal form.

A CLDR pattern is filled in field by field, so the position of each part in the text is known.
"""

import datetime as dt
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from regard.pipeline.datasets import locale_formats

Span = tuple[int, int]

NATIVE_DIGITS = {"arab": "٠١٢٣٤٥٦٧٨٩", "deva": "०१२३४५६७८९"}
# The characters of an ISO 8601 date or time that each letter of a CLDR pattern gives.
FIELDS: dict[str, Span] = {
    **dict.fromkeys("y", (0, 4)),
    **dict.fromkeys("ML", (5, 7)),
    **dict.fromkeys("d", (8, 10)),
    **dict.fromkeys("hHkK", (0, 2)),
    **dict.fromkeys("m", (3, 5)),
    **dict.fromkeys("s", (6, 8)),
    # In "2:05 PM" both 2 and PM align with 14.
    **dict.fromkeys("abB", (0, 2)),
}
DIRECTION_MARKS = "\u200e\u200f\u061c"


@dataclass(frozen=True)
class AlignedText:
    """A text as a locale writes it, its normal form, and their aligned spans in characters."""

    source: str
    target: str
    parts: tuple[tuple[Span, Span], ...]


def write_date(
    formats: locale_formats.LocaleFormats, name: str, value: dt.date, digits: str | None = None
) -> AlignedText:
    """Write a date; the target is ISO 8601: ``2026-11-20``."""
    pattern = locale_formats.date_pattern(formats.tag, name)
    source, parts = _fill(formats, pattern, dt.datetime(value.year, value.month, value.day), digits)
    return AlignedText(source, value.isoformat(), parts)


def write_time(
    formats: locale_formats.LocaleFormats, name: str, value: dt.time, digits: str | None = None
) -> AlignedText | None:
    """Write a time; the target is ``14:05``, or ``14:05:30`` if the pattern has seconds.

    Fields that the pattern lacks (the minutes of ``14 Uhr``) are zero. Returns None if the text
    would be ambiguous: ``2:05`` with neither a leading zero nor am/pm.
    """
    pattern = locale_formats.time_pattern(formats.tag, name)
    bare = re.sub("'[^']*'", "", pattern)
    if re.search("(?<!H)H:", bare) and 1 <= value.hour <= 12:
        return None
    value = value.replace(
        minute=value.minute if "m" in bare else 0, second=value.second if "s" in bare else 0
    )
    moment = dt.datetime.combine(dt.date(2000, 1, 1), value)
    source, parts = _fill(formats, pattern, moment, digits)
    return AlignedText(source, value.isoformat("seconds" if "s" in bare else "minutes"), parts)


def join_date_time(
    formats: locale_formats.LocaleFormats, pattern: str, date: AlignedText, time: AlignedText
) -> AlignedText:
    """Join a date and a time; the target is ``2026-11-20T14:05``."""
    pattern = pattern.replace("'", "")
    if "}{" in pattern and date.source[-1].isdigit():
        pattern = formats.joins[0]
    before, _, rest = pattern.partition("{1}")
    between = rest.partition("{0}")[0]
    head = before + date.source + between
    parts = [*_shift(date, len(before), 0), *_shift(time, len(head), len(date.target) + 1)]
    return AlignedText(head + time.source, f"{date.target}T{time.target}", tuple(parts))


def write_number(
    formats: locale_formats.LocaleFormats, value: Decimal, grouped: bool, digits: str | None = None
) -> AlignedText:
    """Write a number with the decimals of ``value``; the target is such as ``-1234.50``."""
    from babel.numbers import format_decimal

    grouped = grouped and abs(value) >= 10 ** (formats.min_grouped - 1)
    pattern = locale_formats.decimal_pattern(formats.tag, _places(value), grouped)
    text = format_decimal(value, pattern, formats.tag, numbering_system=digits or "latn")
    source = _with_digits(text, digits)
    target = format(value, "f")
    return AlignedText(source, target, _number_parts(source, target))


def write_amount(
    formats: locale_formats.LocaleFormats,
    value: Decimal,
    currency: str,
    form: str,
    digits: str | None = None,
) -> AlignedText | None:
    """Write an amount of money; the target is such as ``1234.50 EUR``.

    Returns None if the locale has no symbol of its own for the currency.

    Args:
        formats: the locale.
        value: the amount.
        currency: the ISO 4217 code.
        form: how to write the currency: ``symbol``, ``code`` or ``name``.
        digits: the numbering system; None for European digits.
    """
    from babel.numbers import format_currency

    if form == "symbol" and locale_formats.currency_symbol(formats.tag, currency) is None:
        return None
    places = _places(value)
    if form == "name":
        pattern = locale_formats.decimal_pattern(formats.tag, places)
    else:
        pattern = locale_formats.currency_pattern(formats.tag, places, code=form == "code")
    text = format_currency(
        value,
        currency,
        pattern,
        formats.tag,
        currency_digits=False,
        format_type="name" if form == "name" else "standard",
        group_separator=value >= 10 ** (formats.min_grouped - 1),
        numbering_system=digits or "latn",
    )
    source = _with_digits(text, digits)
    plain = format(value, "f")
    numbers = _number_parts(source, plain)
    first = numbers[0][0][0]
    last = numbers[-1][0][1]
    # The currency is before or after the number.
    span = _strip(source, 0, first) or _strip(source, last, len(source)) or (0, 0)
    unit = span, (len(plain) + 1, len(plain) + 4)
    return AlignedText(source, f"{plain} {currency}", (*numbers, unit))


def write_words(formats: locale_formats.LocaleFormats, value: int) -> AlignedText:
    """Write an integer in words; the target is its digits."""
    from num2words import num2words

    source = num2words(value, lang=formats.words)
    target = str(value)
    return AlignedText(source, target, (((0, len(source)), (0, len(target))),))


def _fill(
    formats: locale_formats.LocaleFormats, pattern: str, value: dt.datetime, digits: str | None
) -> tuple[str, tuple[tuple[Span, Span], ...]]:
    from babel.dates import DateTimeFormat, tokenize_pattern

    fields = DateTimeFormat(value, locale_formats.locale(formats.tag))
    text = ""
    parts = []
    token: Any  # literal text, or the letter of a field and its count
    for kind, token in tokenize_pattern(pattern):
        segment = token if kind == "chars" else fields[token[0] * token[1]]
        if kind != "chars" and token[0] in FIELDS:
            parts.append(((len(text), len(text) + len(segment)), FIELDS[token[0]]))
        text += segment
    return _with_digits(text, digits), tuple(parts)


def _with_digits(text: str, digits: str | None) -> str:
    return text.translate(str.maketrans(string.digits, NATIVE_DIGITS[digits])) if digits else text


def _places(value: Decimal) -> int:
    return max(0, -int(value.as_tuple().exponent))


def _number_parts(source: str, target: str) -> tuple[tuple[Span, Span], ...]:
    """Align digits in order, and the decimal separator with the point."""
    digits = iter([i for i, character in enumerate(source) if character.isdecimal()])
    parts: list[tuple[Span, Span]] = []
    for position, character in enumerate(target):
        if character.isdecimal():
            index = next(digits)
        elif character == "." and parts:
            index = parts[-1][0][1]
        else:
            continue
        parts.append(((index, index + 1), (position, position + 1)))
    return tuple(parts)


def _strip(text: str, start: int, end: int) -> Span | None:
    """Return a span without surrounding spaces and direction marks; None if nothing is left."""
    segment = text[start:end]
    stripped = segment.strip(string.whitespace + "\u00a0\u202f" + DIRECTION_MARKS)
    if not stripped:
        return None
    start += segment.index(stripped)
    return start, start + len(stripped)


def _shift(text: AlignedText, source: int, target: int) -> Iterator[tuple[Span, Span]]:
    for (a, b), (c, d) in text.parts:
        yield (a + source, b + source), (c + target, d + target)
