import pytest

from components.words import counted, figure, rows_of, size, some_spans


def test_counted():
    assert counted(1, "line") == "1 line"
    assert counted(2000, "line") == "2,000 lines"
    assert counted(0, "entry", "entries") == "0 entries"


@pytest.mark.parametrize(
    ("count", "text"),
    [(1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (2 << 50, "2048.0 TiB")],
)
def test_size(count, text):
    assert size(count) == text


def test_rows_of():
    assert rows_of({"rows": {"train": 1200, "eval": 0, "test": 50}}) == "1,200 train, 50 test"
    assert rows_of({}) == ""
    replayed = {"replayed": True, "rows": {"train": 0}, "available": 1}
    assert rows_of(replayed) == "0 of 1 row replayed"


def test_some_spans():
    assert some_spans([]) == ""
    new, old = [{"name": "8"}, {"name": "9"}], [{"name": "6", "replayed": True}]
    assert some_spans(new) == "8 to 9 (2)"
    assert some_spans([*old, *new[:1]]) == "8, replaying 6"


def test_figure():
    assert figure(33.1267, 100.0) == "33.13"
    assert figure(0.98125, 1.0) == "0.9812"
    assert figure(None) == "undefined"
    assert figure(float("nan")) == "undefined"
