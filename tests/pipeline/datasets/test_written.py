import datetime as dt
from decimal import Decimal

import pytest

from pipeline.datasets.locales import STYLES
from pipeline.datasets.quickstart import key
from pipeline.datasets.written import (
    join,
    write_amount,
    write_date,
    write_number,
    write_time,
    write_words,
)

STYLE = {style.tag: style for style in STYLES}
DAY = dt.date(2026, 11, 20)


def pieces(written):
    return {
        (part.name, written.source[slice(*part.source)], written.target[slice(*part.target)])
        for part in written.parts
    }


@pytest.mark.parametrize(
    ("tag", "name", "native", "text"),
    [
        ("en", "full", False, "Friday, November 20, 2026"),
        ("en_GB", "full", False, "Friday, 20 November 2026"),
        ("zh", "full", False, "2026年11月20日星期五"),
        ("de", "medium", False, "20.11.2026"),
        ("fr", "full", False, "vendredi 20 novembre 2026"),
        ("es", "long", False, "20 de noviembre de 2026"),
        ("ar", "long", True, "٢٠ نوفمبر ٢٠٢٦"),
        ("hi", "full", True, "शुक्रवार, २० नवंबर २०२६"),
    ],
)
def test_dates(tag, name, native, text):
    written = write_date(STYLE[tag], name, DAY, native)
    assert written.source == text
    assert written.target == "2026-11-20"
    assert {name for name, _, _ in pieces(written)} == {"day", "month", "year"}


def test_date_parts():
    written = write_date(STYLE["en_GB"], "full", DAY)
    assert pieces(written) == {
        ("day", "20", "20"),
        ("month", "November", "11"),
        ("year", "2026", "2026"),
    }


@pytest.mark.parametrize(
    ("tag", "name", "text", "target"),
    [
        ("en", "short", "2:05\u202fPM", "14:05"),
        ("en", "h", "2\u202fPM", "14:00"),
        ("zh", "Bhm", "下午2:05", "14:05"),
        ("de", "=HH:mm 'Uhr'", "14:05 Uhr", "14:05"),
        ("de", "medium", "14:05:30", "14:05:30"),
        ("fr", "=H 'h' mm", "14 h 05", "14:05"),
        ("es", "Bhm", "2:05 de la tarde", "14:05"),
        ("ja", "=aK'時'mm'分'", "午後2時05分", "14:05"),
        ("hi", "Bhm", "दोपहर 2:05", "14:05"),
    ],
)
def test_times(tag, name, text, target):
    if name == "h":
        text = text.replace("\u202f", " ")
    written = write_time(STYLE[tag], name, dt.time(14, 5, 30))
    assert (written.source, written.target) == (text, target)


def test_a_time_that_could_be_either_half_of_the_day_is_not_written():
    assert write_time(STYLE["es"], "short", dt.time(2, 5)) is None
    assert write_time(STYLE["es"], "short", dt.time(12, 5)) is None
    assert write_time(STYLE["es"], "short", dt.time(14, 5)).source == "14:05"
    assert write_time(STYLE["de"], "short", dt.time(2, 5)).source == "02:05"
    assert write_time(STYLE["ja"], "H", dt.time(2, 5)).source == "2時"


def test_the_day_period_is_part_of_the_hour():
    written = write_time(STYLE["en"], "short", dt.time(14, 5))
    assert pieces(written) == {("hour", "2", "14"), ("hour", "PM", "14"), ("minute", "05", "05")}


def test_join_moves_the_parts():
    style = STYLE["de"]
    date = write_date(style, "long", DAY)
    written = join(style, "{1} 'um' {0}", date, write_time(style, "=HH:mm 'Uhr'", dt.time(9, 7)))
    assert written.source == "20. November 2026 um 09:07 Uhr"
    assert written.target == "2026-11-20T09:07"
    assert pieces(written) == {
        ("day", "20", "20"),
        ("month", "November", "11"),
        ("year", "2026", "2026"),
        ("hour", "09", "09"),
        ("minute", "07", "07"),
    }


def test_join_keeps_digits_apart():
    style = STYLE["zh"]
    time = write_time(style, "short", dt.time(14, 5))
    assert join(style, "{1}{0}", write_date(style, "short", DAY), time).source == "2026/11/20 14:05"
    assert join(style, "{1}{0}", write_date(style, "long", DAY), time).source == (
        "2026年11月20日14:05"
    )


@pytest.mark.parametrize(
    ("tag", "value", "native", "text"),
    [
        ("en", "1234.56", False, "1,234.56"),
        ("de", "1234.56", False, "1.234,56"),
        ("fr", "1234567.50", False, "1\u202f234\u202f567,50"),
        ("es", "1234.5", False, "1234,5"),
        ("es", "12345", False, "12.345"),
        ("hi", "1234567.89", True, "१२,३४,५६७.८९"),
        ("ar", "1234.56", True, "١٬٢٣٤٫٥٦"),
        ("de", "-12.50", False, "-12,50"),
    ],
)
def test_numbers(tag, value, native, text):
    written = write_number(STYLE[tag], Decimal(value), True, native)
    assert (written.source, written.target) == (text, value)
    for name, source, target in pieces(written):
        assert name in ("digit", "point")
        assert name == "point" or int(source) == int(target)


def test_number_without_groups():
    assert write_number(STYLE["de"], Decimal("1234567.50"), False).source == "1234567,50"


@pytest.mark.parametrize(
    ("tag", "value", "currency", "form", "text"),
    [
        ("de", "1234.56", "EUR", "symbol", "1.234,56\u00a0€"),
        ("en", "1234.56", "GBP", "symbol", "£1,234.56"),
        ("en", "1234.56", "CHF", "code", "CHF\u00a01,234.56"),
        ("fr", "1234.56", "USD", "name", "1\u202f234,56 dollars des États-Unis"),
        ("ja", "1234", "JPY", "name", "1,234円"),
        ("hi", "1234567", "INR", "symbol", "₹12,34,567"),
        ("es", "1234.50", "EUR", "symbol", "1234,50\u00a0€"),
    ],
)
def test_amounts(tag, value, currency, form, text):
    written = write_amount(STYLE[tag], Decimal(value), currency, form)
    assert (written.source, written.target) == (text, f"{value} {currency}")
    (unit,) = [piece for piece in pieces(written) if piece[0] == "currency"]
    assert unit[2] == currency
    assert unit[1] == unit[1].strip()
    assert unit[1] in text


def test_shared_symbols_are_not_written():
    assert write_amount(STYLE["en"], Decimal("5.00"), "USD", "symbol") is None
    assert write_amount(STYLE["zh"], Decimal("5.00"), "CNY", "symbol") is None
    assert write_amount(STYLE["es"], Decimal("5.00"), "INR", "symbol") is None


def test_words():
    written = write_words(STYLE["de"], 567)
    assert (written.source, written.target) == ("fünfhundertsiebenundsechzig", "567")


def test_no_text_has_two_readings_anywhere():
    """Every time of day and every kind of date, in every pattern of every locale."""
    seen = {}
    dates = [DAY + dt.timedelta(days=37 * i) for i in range(400)]
    dates += [dt.date(2027, month, day) for month in range(1, 13) for day in range(1, 13)]
    times = [dt.time(h, m, s) for h in range(24) for m in (0, 5, 12, 48) for s in (0, 9, 30)]
    for style in STYLES:
        for native in (False, True) if style.digits else (False,):
            written = [write_date(style, n, d, native) for n in style.dates for d in dates]
            written += [write_time(style, n, t, native) for n in style.times for t in times]
            for one in filter(None, written):
                assert seen.setdefault(key(one.source), one.target) == one.target, one
    assert len(seen) > 15_000


def test_words_of_all_languages_agree():
    seen = {}
    for style in STYLES:
        if style.words:
            for value in range(0, 10_000, 7 if style.words == "ja" else 13):
                text = write_words(style, value).source
                assert seen.setdefault(key(text), value) == value, (style.tag, text)
