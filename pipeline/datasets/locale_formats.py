"""The CLDR formats of dates, times, numbers and amounts in each locale.

Only unambiguous formats are listed: no numeric dates whose order of day and month differs between
locales (``3/4/2026``), no two-digit years, and no symbols of several currencies (``$``, ``¥``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from babel import Locale

_COMMON = ("EUR", "USD", "GBP", "JPY")
SHARED_SYMBOLS = ("$", "¥", "￥", "元")


@dataclass(frozen=True)
class LocaleFormats:
    """The formats of one locale.

    Attributes:
        tag: the CLDR identifier.
        times: CLDR names (``short``), skeletons (``Bhm``), or patterns after ``=``.
        dates: formats of dates, likewise.
        joins: patterns that join a date ``{1}`` and a time ``{0}``.
        currencies: ISO 4217 codes.
        words: the language in num2words, if it spells numbers correctly.
        digits: the numbering system used in addition to European digits.
        min_grouped: the minimum number of digits that are grouped.
    """

    tag: str
    times: tuple[str, ...]
    dates: tuple[str, ...] = ("full", "long", "medium", "yMMMEd")
    joins: tuple[str, ...] = ("{1}, {0}",)
    currencies: tuple[str, ...] = _COMMON
    words: str | None = None
    digits: str | None = None
    min_grouped: int = 4


# fmt: off
_ENGLISH = LocaleFormats("en", times=("short", "medium", "h"), joins=("{1}, {0}", "{1} 'at' {0}"),
                         currencies=(*_COMMON, "INR"), words="en")
LOCALES = (
    _ENGLISH,
    replace(_ENGLISH, tag="en_GB", times=("short", "medium", "hm")),
    LocaleFormats("zh", times=("short", "medium", "Bhm", "=Bh'点'mm'分'", "Bh"),
                  dates=("full", "long", "short", "yMMMEd"), joins=("{1} {0}", "{1}{0}"),
                  currencies=(*_COMMON, "CNY")),
    LocaleFormats("de", times=("short", "medium", "=HH:mm 'Uhr'", "H"),
                  joins=("{1}, {0}", "{1} 'um' {0}"), currencies=(*_COMMON, "CHF"), words="de"),
    LocaleFormats("fr", times=("short", "medium", "=H 'h' mm", "=H 'h'"),
                  joins=("{1}, {0}", "{1} 'à' {0}"), currencies=(*_COMMON, "CHF"), words="fr"),
    LocaleFormats("es", times=("short", "medium", "Bhm", "Bh"), words="es", min_grouped=5),
    LocaleFormats("ja", times=("short", "medium", "=aK'時'mm'分'", "=H'時'm'分'", "H"),
                  dates=("full", "long", "short", "yMMMEd"), joins=("{1} {0}", "{1}{0}"),
                  currencies=(*_COMMON, "CNY"), words="ja"),
    LocaleFormats("ar", times=("short", "medium"), dates=("full", "long"), joins=("{1}، {0}",),
                  currencies=(*_COMMON, "EGP", "SAR"), digits="arab"),
    LocaleFormats("hi", times=("short", "medium", "Bhm"), currencies=(*_COMMON, "INR"),
                  digits="deva"),
    LocaleFormats("pt", times=("short", "medium", "Bhm"), joins=("{1}, {0}", "{1} 'às' {0}"),
                  currencies=(*_COMMON, "BRL"), words="pt_BR"),
    LocaleFormats("ru", times=("short", "medium", "Bhm"),
                  dates=("full", "long", "medium", "short"), joins=("{1}, {0}", "{1} 'в' {0}"),
                  currencies=(*_COMMON, "RUB"), words="ru"),
    LocaleFormats("it", times=("short", "medium"), joins=("{1}, {0}", "{1} 'alle' 'ore' {0}"),
                  currencies=(*_COMMON, "CHF"), words="it"),
)
# fmt: on


@cache
def locale(tag: str) -> Locale:
    """Return Babel's data of one locale."""
    from babel import Locale

    return Locale.parse(tag)


@cache
def date_pattern(tag: str, name: str) -> str:
    """Return the CLDR date pattern that ``LocaleFormats.dates`` refers to."""
    return _pattern(tag, name, locale(tag).date_formats)


@cache
def time_pattern(tag: str, name: str) -> str:
    """Return the CLDR time pattern that ``LocaleFormats.times`` refers to."""
    # Day periods are written in full: "2:05 de la tarde".
    return re.sub("B+", "BBBB", _pattern(tag, name, locale(tag).time_formats))


def _pattern(tag: str, name: str, formats: Mapping[str, Any]) -> str:
    if name.startswith("="):
        return name[1:]
    if name in formats:
        return formats[name].pattern
    return locale(tag).datetime_skeletons[name].pattern


@cache
def decimal_pattern(tag: str, places: int, grouped: bool = True) -> str:
    """Return the pattern of a number with exactly ``places`` decimals."""
    whole = locale(tag).decimal_formats[None].pattern.split(".")[0] if grouped else "0"
    return whole + _decimals(places)


@cache
def currency_pattern(tag: str, places: int, code: bool) -> str:
    """Return the pattern of an amount, with the currency's symbol or its ISO 4217 code."""
    pattern = locale(tag).currency_formats["standard"].pattern.split(";")[0]
    pattern = re.sub(r"\.0+", _decimals(places), pattern)
    if not code:
        return pattern
    # CLDR's currency spacing: a space between letters and digits.
    return re.sub("¤(?=[#0])", "¤\u00a0", pattern).replace("¤", "¤¤")


def _decimals(places: int) -> str:
    """Return the end of a pattern for numbers with that many decimals."""
    return "." + "0" * places if places else ""


def currency_symbol(tag: str, currency: str) -> str | None:
    """Return the currency's symbol in a locale; None if it is shared or missing."""
    text = locale(tag).currency_symbols.get(currency)
    return None if text is None or text == currency or text in SHARED_SYMBOLS else text
