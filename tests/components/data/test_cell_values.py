"""Parsing of cells of tables and JSON, and messages about invalid ones."""

import re
from dataclasses import replace
from decimal import Decimal

import pytest

from regard.components.data.cell_values import CellParser
from regard.core import kinds
from regard.core.features import CellError, Feature

TEXT = Feature("a", kinds.TEXT)
IMAGE = Feature("image", kinds.IMAGE)
SCORE = Feature("score", kinds.NUMBER, low=0, high=5)
POINTS = Feature("points", kinds.POINTS, min_points=3)
ANSWER = Feature("answer", kinds.POSITIONS, role="reference")
CAPTIONS = Feature("caption", kinds.TEXT, role="reference", multiple=True)
TITLE = Feature("title", kinds.TEXT, optional=True)
LINKS = Feature("links", kinds.TEXT, role="extra", links=True)
SQUARE = [[0, 0], [0, 1.5], [1, 1], [1, 0]]


def parse(feature, cell, from_text=False):
    (value,) = CellParser([feature], from_text=from_text)([cell])
    return value


@pytest.mark.parametrize(
    ("feature", "cell", "expected"),
    [
        (TEXT, " so ", " so "),
        (CAPTIONS, "a dog", ["a dog"]),
        (CAPTIONS, "", [""]),
        (TITLE, "", None),
        (SCORE, " 3.25 ", 3.25),
        (Feature("score", kinds.NUMBER, optional=True), " ", None),
        (IMAGE, "a b/c.jpg", "a b/c.jpg"),
        (POINTS, "[[0, 0], [0, 1.5], [1, 1]]", [0.0, 0.0, 0.0, 1.5, 1.0, 1.0]),
        (ANSWER, "3 0 1", [3, 0, 1]),
        (LINKS, "0-0 1p2  12-3 ", "0-0 1p2  12-3 "),
        (LINKS, "", ""),
        (ANSWER, " [3, 0, 1]", [3, 0, 1]),
    ],
)
def test_parse_text(feature, cell, expected):
    assert parse(feature, cell, from_text=True) == expected


@pytest.mark.parametrize(
    ("feature", "cell", "expected"),
    [
        (TEXT, ["One.", "", "Two."], "One.\nTwo."),
        (TEXT, [], ""),
        (CAPTIONS, "a dog", ["a dog"]),
        (CAPTIONS, ["a dog", "a cat"], ["a dog", "a cat"]),
        (TITLE, None, None),
        (SCORE, 3, 3.0),
        (SCORE, Decimal("3.25"), 3.25),
        (POINTS, SQUARE, [0.0, 0.0, 0.0, 1.5, 1.0, 1.0, 1.0, 0.0]),
        (ANSWER, [3, 0, 1], [3, 0, 1]),
    ],
)
def test_parse_value(feature, cell, expected):
    value = parse(feature, cell)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("feature", "cell", "message"),
    [
        (SCORE, "x", "score 'x' is not a number"),
        (SCORE, " ", "no value for 'score'"),
        (SCORE, "nan", "score is NaN"),
        (SCORE, "-inf", "score is infinite"),
        (Feature("score", kinds.NUMBER), "1e39", "score is too large"),
        (SCORE, "5.00000001", "score 5.00000001 is not from 0 to 5"),
        (
            replace(SCORE, limits_key="model.scale"),
            "6",
            "score 6 is not from 0 to 5 (`model.scale`)",
        ),
        (Feature("score", kinds.NUMBER, low=1), "0.5", "score 0.5 is not from 1 to inf"),
        (Feature("score", kinds.NUMBER, high=1), "2", "score 2 is not from -inf to 1"),
        (IMAGE, "", "no value for 'image'"),
        (POINTS, "", "no value for 'points'"),
        (POINTS, "[[0, 0], [1", "points '[[0, 0], [1' is not a JSON list of [x, y]"),
        (POINTS, "[" * 100_000, "points '" + "[" * 59 + "…' is not a JSON list of [x, y]"),
        (POINTS, "3", "points 3 is not a list of [x, y]"),
        (POINTS, "[[0, 0], [1, 1]]", "3 points needed, got 2"),
        (POINTS, "[[0, 0], [1, 1], [2, 2], [NaN, 0]]", "point 3 is NaN"),
        (POINTS, "[[0, 0], [1, Infinity], [2, 2]]", "point 1 is infinite"),
        (POINTS, "[[0, 0], [1, 1e300], [2, 2]]", "point 1 is too large"),
        (POINTS, "[[0, 0], [1, 1, 1], [2, 2]]", "point 1 is [1, 1, 1], not [x, y]"),
        (POINTS, '[[0, 0], [1, "1"], [2, 2]]', "point 1 is [1, '1'], not [x, y]"),
        (ANSWER, "", "no value for 'answer'"),
        (ANSWER, "1 two", "answer '1 two' is not a list of whole numbers"),
        (ANSWER, "[1, 2", "answer '[1, 2' is not a list of whole numbers"),
        (ANSWER, "[1, 2.0]", "answer: 2.0 is not a whole number"),
        (ANSWER, "1 -2", "invalid position -2: it is less than 0"),
        (ANSWER, f"{2**63}", f"invalid position {2**63}: it is too large"),
    ],
)
def test_invalid_text(feature, cell, message):
    with pytest.raises(CellError, match=f"^{re.escape(message)}$"):
        parse(feature, cell, from_text=True)


@pytest.mark.parametrize(
    ("feature", "cell", "message"),
    [
        (TEXT, 3, "the value of 'a' is not a string"),
        (CAPTIONS, {}, "the value of 'caption' is not a string or a list of strings"),
        (CAPTIONS, ["a", 3], "item 2 of 'caption' is not a string"),
        (CAPTIONS, [], "no value for 'caption'"),
        (
            Feature("links", kinds.TEXT, role="extra", links=True),
            ["0-0"],
            "the value of 'links' is not a string",
        ),
        (TEXT, ["a", None], "item 2 of 'a' is not a string"),
        (SCORE, None, "no value for 'score'"),
        (SCORE, True, "score True is not a number"),
        (SCORE, "3", "score '3' is not a number"),
        (Feature("score", kinds.NUMBER), 10**400, "score is too large"),
        (IMAGE, 3, "the value of 'image' is not the path of an image"),
        (POINTS, [[0, 0], [None, 1], [1, 1]], "point 1 is [None, 1], not [x, y]"),
        (ANSWER, [True], "answer: True is not a whole number"),
        (ANSWER, 3, "answer 3 is not a list of whole numbers"),
    ],
)
def test_invalid_value(feature, cell, message):
    with pytest.raises(CellError, match=f"^{re.escape(message)}$"):
        parse(feature, cell)


def test_positions_must_be_indices_of_points():
    parser = CellParser([ANSWER, POINTS])
    assert parser([[3, 0], SQUARE])[0] == [3, 0]
    with pytest.raises(CellError, match="invalid position 12: there are only 4 points") as caught:
        parser([[0, 12], SQUARE])
    assert caught.value.column == 0


def test_error_has_column_and_name_of_file():
    with pytest.raises(CellError, match=r"^relatedness 7 is not from 0 to 5$") as caught:
        CellParser([TITLE, SCORE], names=["title", "relatedness"])(["", 7])
    assert caught.value.column == 1


def test_only_text_may_have_several_values():
    with pytest.raises(ValueError, match="one value of the kind number"):
        CellParser([Feature("scores", kinds.NUMBER, multiple=True)])


@pytest.mark.parametrize(
    "cell", ["0:0", "0-0 1", "0-0,1-1", "1--2", "a-0", "0-0 1-1234567", "0-0\n"]
)
@pytest.mark.parametrize("from_text", [True, False])
def test_links_have_pharaohs_format(cell, from_text):
    with pytest.raises(CellError, match=r"links .* does not have the form 0-0 1-2"):
        parse(LINKS, cell, from_text)
