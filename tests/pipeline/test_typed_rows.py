from __future__ import annotations

import re

import pytest

from components.errors import UserError
from pipeline.typed_rows import Reader
from tests import fake_models, fake_tasks

TEXT = fake_models.Reverser().contract()
TEXTS = fake_tasks.Matcher().contract()
POINTS = fake_tasks.Sorter().contract()
IMAGE = fake_tasks.Namer().contract()


def read(contract, *texts):
    return list(Reader(contract).arguments(texts))


def test_a_text_is_taken_as_it_is():
    (row,) = read(TEXT, "  a\tb ")
    assert row.inputs == row.asked == {"source": "  a\tb "}


def test_nothing_is_not_asked():
    (row,) = read(TEXT, " ")
    assert (row.inputs, row.asked) == ({"source": " "}, None)
    (row,) = read(POINTS, "")
    assert row.asked is None


def test_as_many_arguments_as_inputs_make_a_row():
    rows = read(TEXTS, "a", "b", "", "d")
    assert [row.asked for row in rows] == [
        {"first": "a", "second": "b"},
        {"first": "", "second": "d"},
    ]


def test_a_row_that_is_not_whole_is_told():
    with pytest.raises(UserError, match="1 value, but the model has 2 inputs: first, second") as e:
        read(TEXTS, "a", "b", "c")
    assert e.value.where == "TEXT 3"
    assert e.value.remedy == "Give 2 arguments for each row."


def test_points_are_json():
    (row,) = read(POINTS, "[[0.1, 2], [3, -4]]")
    assert row.inputs == row.asked == {"points": [[0.1, 2.0], [3.0, -4.0]]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.1 0.2", "points '0.1 0.2' is not a JSON list"),
        ("[[0.1, NaN]]", "point 0 is NaN"),
        ("[[1, 2], [3]]", r"point 1 is '?\[3\]'?, not \[x, y\]"),
        ("[]", "0 points, but at least 1 is needed"),
    ],
)
def test_what_are_no_points_is_told(text, message):
    with pytest.raises(UserError, match=message) as caught:
        read(POINTS, "[[0, 0]]", text)
    assert caught.value.where == "TEXT 2"
    assert "such as [[0.1, 0.2], [0.5, 0.9]]" in caught.value.remedy


def test_an_image_is_its_path(tmp_path):
    path = tmp_path / "a b.png"
    path.write_bytes(fake_tasks.png(1, 2))
    (row,) = read(IMAGE, str(path))
    assert row.inputs == {"image": str(path)}
    assert row.asked == {"image": path.read_bytes()}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (b"text", "is no image (JPEG, PNG, GIF or BMP)"),
        (b"\x89PNG\r\n\x1a\n", "is cut off"),
    ],
)
def test_an_image_that_cannot_be_read_is_named(tmp_path, content, message):
    path = tmp_path / "a.png"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=re.escape(str(path)) + ".*" + re.escape(message)) as caught:
        read(IMAGE, str(path))
    assert caught.value.where == "TEXT 1"


def test_lines_are_given_in_batches_and_inputs_by_tabs():
    batches = list(Reader(TEXTS).lines([["a\tb", ""], ["\tc"]]))
    assert [[row.asked for row in batch] for batch in batches] == [
        [{"first": "a", "second": "b"}, None],
        [{"first": "", "second": "c"}],
    ]


def test_a_text_may_hold_tabs_where_there_is_one_input():
    ((row,),) = Reader(TEXT).lines([["a\tb"]])
    assert row.asked == {"source": "a\tb"}


def test_a_bad_line_is_told_after_the_rows_before_it():
    batches = Reader(TEXTS).lines([["a\tb", "c\td"], ["e\tf", "alone", "g\th"]])
    assert [len(next(batches)), len(next(batches))] == [2, 1]
    with pytest.raises(UserError, match="1 value") as caught:
        next(batches)
    assert caught.value.where == "standard input:4"
    assert "tabs" in caught.value.remedy


def test_a_row_is_shown_short():
    (row,) = read(TEXTS, "a\nb", "x" * 80)
    assert row.shown == f"a b {'x' * 55}…"
