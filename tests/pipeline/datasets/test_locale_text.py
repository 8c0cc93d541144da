"""Texts as locales write them."""

import datetime as dt
from decimal import Decimal

import pytest

from regard.pipeline.datasets.locale_formats import LOCALES
from regard.pipeline.datasets.locale_text import (
    join_date_time,
    write_amount,
    write_date,
    write_number,
    write_time,
    write_words,
)
from regard.pipeline.datasets.quickstart import normalize

FORMATS = {formats.tag: formats for formats in LOCALES}
DAY = dt.date(2026, 11, 20)


def aligned_parts(aligned):
    return {
        (aligned.source[slice(*source)], aligned.target[slice(*target)])
        for source, target in aligned.parts
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
    aligned = write_date(FORMATS[tag], name, DAY, FORMATS[tag].digits if native else None)
    assert aligned.source == text
    assert aligned.target == "2026-11-20"
    assert {target for _, target in aligned_parts(aligned)} == {"20", "11", "2026"}


def test_date_parts():
    aligned = write_date(FORMATS["en_GB"], "full", DAY)
    assert aligned_parts(aligned) == {("20", "20"), ("November", "11"), ("2026", "2026")}


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
    aligned = write_time(FORMATS[tag], name, dt.time(14, 5, 30))
    assert (aligned.source, aligned.target) == (text, target)


def test_ambiguous_times_are_not_written():
    assert write_time(FORMATS["es"], "short", dt.time(2, 5)) is None
    assert write_time(FORMATS["es"], "short", dt.time(12, 5)) is None
    assert write_time(FORMATS["es"], "short", dt.time(14, 5)).source == "14:05"
    assert write_time(FORMATS["de"], "short", dt.time(2, 5)).source == "02:05"
    assert write_time(FORMATS["ja"], "H", dt.time(2, 5)).source == "2時"


def test_day_period_is_aligned_with_the_hour():
    aligned = write_time(FORMATS["en"], "short", dt.time(14, 5))
    assert aligned_parts(aligned) == {("2", "14"), ("PM", "14"), ("05", "05")}


def test_join_shifts_the_parts():
    formats = FORMATS["de"]
    time = write_time(formats, "=HH:mm 'Uhr'", dt.time(9, 7))
    aligned = join_date_time(formats, "{1} 'um' {0}", write_date(formats, "long", DAY), time)
    assert aligned.source == "20. November 2026 um 09:07 Uhr"
    assert aligned.target == "2026-11-20T09:07"
    dates = {("20", "20"), ("November", "11"), ("2026", "2026")}
    assert aligned_parts(aligned) == dates | {("09", "09"), ("07", "07")}


@pytest.mark.parametrize(
    ("name", "text"), [("short", "2026/11/20 14:05"), ("long", "2026年11月20日14:05")]
)
def test_join_separates_digits(name, text):
    formats = FORMATS["zh"]
    time = write_time(formats, "short", dt.time(14, 5))
    date = write_date(formats, name, DAY)
    assert join_date_time(formats, "{1}{0}", date, time).source == text


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
    digits = FORMATS[tag].digits if native else None
    aligned = write_number(FORMATS[tag], Decimal(value), True, digits)
    assert (aligned.source, aligned.target) == (text, value)
    for source, target in aligned_parts(aligned):
        assert target == "." or int(source) == int(target)


def test_number_without_grouping():
    assert write_number(FORMATS["de"], Decimal("1234567.50"), False).source == "1234567,50"


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
    aligned = write_amount(FORMATS[tag], Decimal(value), currency, form)
    assert (aligned.source, aligned.target) == (text, f"{value} {currency}")
    (unit,) = [source for source, target in aligned_parts(aligned) if target == currency]
    assert unit == unit.strip()
    assert unit in text


@pytest.mark.parametrize(("tag", "currency"), [("en", "USD"), ("zh", "CNY"), ("es", "INR")])
def test_shared_symbols_are_not_written(tag, currency):
    assert write_amount(FORMATS[tag], Decimal("5.00"), currency, "symbol") is None


def test_words():
    aligned = write_words(FORMATS["de"], 567)
    assert (aligned.source, aligned.target) == ("fünfhundertsiebenundsechzig", "567")


def test_no_text_is_ambiguous():
    """Tries all times of day and many dates in every pattern of every locale."""
    targets = {}
    dates = [DAY + dt.timedelta(days=37 * i) for i in range(400)]
    dates += [dt.date(2027, month, day) for month in range(1, 13) for day in range(1, 13)]
    times = [dt.time(h, m, s) for h in range(24) for m in (0, 5, 12, 48) for s in (0, 9, 30)]
    for formats in LOCALES:
        for digits in {None, formats.digits}:
            aligned = [write_date(formats, n, d, digits) for n in formats.dates for d in dates]
            aligned += [write_time(formats, n, t, digits) for n in formats.times for t in times]
            for one in filter(None, aligned):
                assert targets.setdefault(normalize(one.source), one.target) == one.target, one
    assert len(targets) > 15_000


def test_words_are_unambiguous_across_languages():
    targets = {}
    for formats in LOCALES:
        if formats.words:
            for value in range(0, 10_000, 7 if formats.words == "ja" else 13):
                text = write_words(formats, value).source
                assert targets.setdefault(normalize(text), value) == value, (formats.tag, text)
