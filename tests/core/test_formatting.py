import pytest

from regard.core.formatting import (
    format_bytes,
    format_count,
    format_metric,
    format_rows,
    format_spans,
    format_wait,
    join_words,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7199, "120 minutes"),
        (3 * 3600 + 100, "3 hours"),
        (5 * 86400 + 3600, "5 days"),
    ],
)
def test_format_wait(seconds, text):
    assert format_wait(seconds) == text


@pytest.mark.parametrize(
    ("words", "text"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")],
)
def test_join_words(words, text):
    assert join_words(words) == text


def test_format_count():
    assert format_count(1, "line") == "1 line"
    assert format_count(2000, "line") == "2,000 lines"
    assert format_count(0, "line") == "0 lines"


@pytest.mark.parametrize(
    ("count", "text"),
    [(1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (2 << 50, "2048.0 TiB")],
)
def test_format_bytes(count, text):
    assert format_bytes(count) == text


def test_format_rows():
    assert format_rows({"rows": {"train": 1200, "eval": 0, "test": 50}}) == "1,200 train, 50 test"
    assert format_rows({}) == ""
    replayed = {"replayed": True, "rows": {"train": 0}, "available": 1}
    assert format_rows(replayed) == "0 of 1 row replayed"


def test_format_spans():
    assert format_spans([]) == ""
    new, old = [{"name": "8"}, {"name": "9"}], [{"name": "6", "replayed": True}]
    assert format_spans(new) == "8 to 9 (2)"
    assert format_spans([*old, *new[:1]]) == "8, replaying 6"


def test_format_metric():
    assert format_metric(33.1267, 100.0) == "33.13"
    assert format_metric(0.98125, 1.0) == "0.9812"
    assert format_metric(None) == "undefined"
    assert format_metric(float("nan")) == "undefined"
