"""What cells become, in a table and in JSON, and what is told of those that are wrong."""

from __future__ import annotations

from decimal import Decimal

import pytest

from components.corpus_gen.fields import Fields, Wrong
from models.tasks.features import Feature

SCORE = Feature("score", "number", low=0, high=5)
POINTS = Feature("points", "points", least=3)
ANSWER = Feature("answer", "positions", role="reference")
CAPTIONS = Feature("caption", "text", role="reference", several=True)
TITLE = Feature("title", "text", optional=True)
SQUARE = [[0, 0], [0, 1.5], [1, 1], [1, 0]]


def value(feature, cell, written=False):
    (found,) = Fields([feature], written=written)([cell])
    return found


def reason(feature, cell, written=False):
    with pytest.raises(Wrong) as caught:
        value(feature, cell, written)
    return str(caught.value)


@pytest.mark.parametrize(
    ("feature", "cell", "expected"),
    [
        (Feature("a", "text"), "", ""),
        (Feature("a", "text"), " so ", " so "),
        (CAPTIONS, "a dog", ["a dog"]),
        (CAPTIONS, "", [""]),
        (TITLE, "", None),
        (SCORE, " 3.25 ", 3.25),
        (SCORE, "5", 5.0),
        (Feature("score", "number", optional=True), " ", None),
        (Feature("image", "image"), "a b/c.jpg", "a b/c.jpg"),
        (POINTS, "[[0, 0], [0, 1.5], [1, 1]]", [0.0, 0.0, 0.0, 1.5, 1.0, 1.0]),
        (ANSWER, "3 0 1", [3, 0, 1]),
        (ANSWER, " [3, 0, 1]", [3, 0, 1]),
    ],
)
def test_the_text_of_a_cell_becomes_a_value(feature, cell, expected):
    assert value(feature, cell, written=True) == expected


@pytest.mark.parametrize(
    ("feature", "cell", "expected"),
    [
        (Feature("a", "text"), ["One.", "", "Two."], "One.\nTwo."),
        (Feature("a", "text"), [], ""),
        (CAPTIONS, "a dog", ["a dog"]),
        (CAPTIONS, ["a dog", "a cat"], ["a dog", "a cat"]),
        (TITLE, None, None),
        (SCORE, 3, 3.0),
        (SCORE, Decimal("3.25"), 3.25),
        (POINTS, SQUARE, [0.0, 0.0, 0.0, 1.5, 1.0, 1.0, 1.0, 0.0]),
        (ANSWER, [3, 0, 1], [3, 0, 1]),
    ],
)
def test_what_is_a_value_already_stays_one(feature, cell, expected):
    found = value(feature, cell)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("feature", "cell", "told"),
    [
        (SCORE, "x", "score 'x' is not a number"),
        (SCORE, " ", "no score"),
        (SCORE, "nan", "score is NaN"),
        (SCORE, "-inf", "score is infinite"),
        (Feature("score", "number"), "1e39", "score is too large"),
        (SCORE, "7", "score 7 is not from 0 to 5"),
        (SCORE, "5.00000001", "score 5.00000001 is not from 0 to 5"),
        (Feature("score", "number", low=1), "0.5", "score 0.5 is not at least 1"),
        (Feature("score", "number", high=1), "2", "score 2 is not at most 1"),
        (Feature("image", "image"), "", "no image"),
        (POINTS, "", "no points"),
        (POINTS, "[[0, 0], [1", "points '[[0, 0], [1' is not a JSON list of [x, y]"),
        (POINTS, "[" * 100_000, "points '" + "[" * 57 + "...' is not a JSON list of [x, y]"),
        (POINTS, "3", "points 3 is not a list of [x, y]"),
        (POINTS, "[[0, 0], [1, 1]]", "2 points, but at least 3 are needed"),
        (POINTS, "[]", "0 points, but at least 3 are needed"),
        (POINTS, "[[0, 0], [1, 1], [2, 2], [NaN, 0]]", "point 3 is NaN"),
        (POINTS, "[[0, 0], [1, Infinity], [2, 2]]", "point 1 is infinite"),
        (POINTS, "[[0, 0], [1, 1e300], [2, 2]]", "point 1 is too large"),
        (POINTS, "[[0, 0], [1, 1, 1], [2, 2]]", "point 1 is [1, 1, 1], not [x, y]"),
        (POINTS, '[[0, 0], [1, "1"], [2, 2]]', "point 1 is [1, '1'], not [x, y]"),
        (POINTS, "[[0, 0], 1, [2, 2]]", "point 1 is 1, not [x, y]"),
        (ANSWER, "", "no answer"),
        (ANSWER, "[]", "no answer"),
        (ANSWER, "1 two", "answer: 'two' is not a whole number"),
        (ANSWER, "[1, 2", "answer '[1, 2' is not a JSON list"),
        (ANSWER, "[1, 2.0]", "answer: 2.0 is not a whole number"),
        (ANSWER, "1 -2", "position -2 is less than 0"),
        (ANSWER, f"{2**63}", f"position {2**63} is too large"),
    ],
)
def test_the_text_of_a_cell_that_is_wrong(feature, cell, told):
    assert reason(feature, cell, written=True) == told


@pytest.mark.parametrize(
    ("feature", "cell", "told"),
    [
        (Feature("a", "text"), 3, "the value of 'a' is not a string"),
        (CAPTIONS, {}, "the value of 'caption' is not a string or a list of strings"),
        (CAPTIONS, ["a", 3], "item 2 of 'caption' is not a string"),
        (CAPTIONS, [], "no caption"),
        (Feature("a", "text"), ["a", None], "item 2 of 'a' is not a string"),
        (SCORE, None, "no score"),
        (SCORE, True, "score True is not a number"),
        (SCORE, "3", "score '3' is not a number"),
        (Feature("score", "number"), 10**400, "score is too large"),
        (Feature("image", "image"), 3, "the value of 'image' is not the path of an image"),
        (Feature("image", "image"), " ", "no image"),
        (POINTS, [[0, 0], [None, 1], [1, 1]], "point 1 is [None, 1], not [x, y]"),
        (ANSWER, [True], "answer: True is not a whole number"),
        (ANSWER, 3, "answer 3 is not a list of whole numbers"),
    ],
)
def test_a_value_that_is_wrong(feature, cell, told):
    assert reason(feature, cell) == told


def test_positions_are_of_the_points_of_their_row():
    fields = Fields([ANSWER, POINTS])
    assert fields([[3, 0], SQUARE])[0] == [3, 0]
    with pytest.raises(Wrong, match=r"^position 12 of 4 points$") as caught:
        fields([[0, 12], SQUARE])
    assert caught.value.column == 0


def test_the_column_that_is_wrong_is_told():
    with pytest.raises(Wrong) as caught:
        Fields([TITLE, SCORE], written=True)(["", "x"])
    assert caught.value.column == 1


def test_messages_name_what_the_file_calls_a_feature():
    with pytest.raises(Wrong, match=r"^relatedness 7 is not from 0 to 5$"):
        Fields([SCORE], called=["relatedness"])([7])


def test_rows_of_plain_text_are_taken_as_they_are():
    cells = ["a", ""]
    assert Fields([Feature("a", "text"), Feature("b", "text")], written=True)(cells) is cells


def test_only_texts_can_be_several():
    with pytest.raises(ValueError, match="only of a text a row may hold several"):
        Fields([Feature("scores", "number", several=True)])
