"""How each locale writes dates, times, numbers and amounts: which CLDR formats are used.

Only formats that can be read in one way are listed. Left out are numeric dates whose order of
day and month differs between locales (``3/4/2026``), two-digit years, and currency symbols that
several currencies share (``$``, ``¥``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from babel import Locale

COMMON = ("EUR", "USD", "GBP", "JPY")
SHARED_SYMBOLS = ("$", "¥", "￥", "元")


@dataclass(frozen=True)
class Style:
    """One locale's formats.

    Attributes:
        tag: the CLDR locale.
        dates: CLDR names (``full``), skeletons (``yMMMEd``) or, behind ``=``, whole patterns.
        times: likewise.
        joins: patterns that put a date ``{1}`` and a time ``{0}`` together.
        currencies: ISO 4217 codes in use.
        words: the language's name in num2words, where it writes the numbers out well.
        digits: the numbering system in use beside the European digits.
        group_from: the least number of digits that are grouped.
    """

    tag: str
    dates: tuple[str, ...]
    times: tuple[str, ...]
    joins: tuple[str, ...] = ("{1}, {0}",)
    currencies: tuple[str, ...] = COMMON
    words: str | None = None
    digits: str | None = None
    group_from: int = 4


STYLES = (
    Style(
        "en",
        dates=("full", "long", "medium", "yMMMEd"),
        times=("short", "medium", "h"),
        joins=("{1}, {0}", "{1} 'at' {0}"),
        currencies=(*COMMON, "INR"),
        words="en",
    ),
    Style(
        "en_GB",
        dates=("full", "long", "medium", "yMMMEd"),
        times=("short", "medium", "hm"),
        joins=("{1}, {0}", "{1} 'at' {0}"),
        currencies=(*COMMON, "INR"),
        words="en",
    ),
    Style(
        "zh",
        dates=("full", "long", "short", "yMMMEd"),
        times=("short", "medium", "Bhm", "=Bh'点'mm'分'", "Bh"),
        joins=("{1} {0}", "{1}{0}"),
        currencies=(*COMMON, "CNY"),
    ),
    Style(
        "de",
        dates=("full", "long", "medium", "yMMMEd"),
        times=("short", "medium", "=HH:mm 'Uhr'", "H"),
        joins=("{1}, {0}", "{1} 'um' {0}"),
        currencies=(*COMMON, "CHF"),
        words="de",
    ),
    Style(
        "fr",
        dates=("full", "long", "medium", "yMMMEd"),
        times=("short", "medium", "=H 'h' mm", "=H 'h'"),
        joins=("{1}, {0}", "{1} 'à' {0}"),
        currencies=(*COMMON, "CHF"),
        words="fr",
    ),
    Style(
        "es",
        dates=("full", "long", "medium", "yMMMEd"),
        times=("short", "medium", "Bhm", "Bh"),
        words="es",
        group_from=5,
    ),
    Style(
        "ja",
        dates=("full", "long", "short", "yMMMEd"),
        times=("short", "medium", "=aK'時'mm'分'", "=H'時'm'分'", "H"),
        joins=("{1} {0}", "{1}{0}"),
        currencies=(*COMMON, "CNY"),
        words="ja",
    ),
    Style(
        "ar",
        dates=("full", "long"),
        times=("short", "medium"),
        joins=("{1}، {0}",),
        currencies=(*COMMON, "EGP", "SAR"),
        digits="arab",
    ),
    Style(
        "hi",
        dates=("full", "long", "medium", "yMMMEd"),
        times=("short", "medium", "Bhm"),
        currencies=(*COMMON, "INR"),
        digits="deva",
    ),
    Style(
        "pt",
        dates=("full", "long", "medium", "yMMMEd"),
        times=("short", "medium", "Bhm"),
        joins=("{1}, {0}", "{1} 'às' {0}"),
        currencies=(*COMMON, "BRL"),
        words="pt_BR",
    ),
    Style(
        "ru",
        dates=("full", "long", "medium", "short"),
        times=("short", "medium", "Bhm"),
        joins=("{1}, {0}", "{1} 'в' {0}"),
        currencies=(*COMMON, "RUB"),
        words="ru",
    ),
    Style(
        "it",
        dates=("full", "long", "medium", "yMMMEd"),
        times=("short", "medium"),
        joins=("{1}, {0}", "{1} 'alle' 'ore' {0}"),
        currencies=(*COMMON, "CHF"),
        words="it",
    ),
)


@cache
def locale(tag: str) -> Locale:
    """Babel's data of one locale."""
    from babel import Locale

    return Locale.parse(tag)


@cache
def date_pattern(tag: str, name: str) -> str:
    """The CLDR date pattern that ``Style.dates`` names."""
    return _pattern(tag, name, locale(tag).date_formats)


@cache
def time_pattern(tag: str, name: str) -> str:
    """The CLDR time pattern that ``Style.times`` names."""
    # Day periods are written in full: "2:05 de la tarde", not an abbreviation of it.
    return re.sub("B+", "BBBB", _pattern(tag, name, locale(tag).time_formats))


def _pattern(tag: str, name: str, formats: Mapping[str, Any]) -> str:
    if name.startswith("="):
        return name[1:]
    if name in formats:
        return formats[name].pattern
    return locale(tag).datetime_skeletons[name].pattern


@cache
def decimal_pattern(tag: str, places: int, grouped: bool = True) -> str:
    """The locale's pattern for a number with exactly ``places`` decimals."""
    whole = locale(tag).decimal_formats[None].pattern.split(".")[0] if grouped else "0"
    return whole + ("." + "0" * places if places else "")


@cache
def currency_pattern(tag: str, places: int, code: bool) -> str:
    """The locale's pattern for an amount, with the currency's symbol or its ISO 4217 code."""
    pattern = locale(tag).currency_formats["standard"].pattern.split(";")[0]
    pattern = re.sub(r"\.0+", "." + "0" * places if places else "", pattern)
    if not code:
        return pattern
    # CLDR's currency spacing: a code of letters does not touch the digits.
    return re.sub("¤(?=[#0])", "¤\u00a0", pattern).replace("¤", "¤¤")


def symbol(tag: str, currency: str) -> str | None:
    """The currency's symbol in this locale, or None where it has none of its own."""
    text = locale(tag).currency_symbols.get(currency)
    return None if text is None or text == currency or text in SHARED_SYMBOLS else text
