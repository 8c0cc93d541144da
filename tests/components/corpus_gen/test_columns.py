from __future__ import annotations

import pytest

from components.corpus_gen.columns import keys, places
from components.corpus_gen.problems import Broken
from models.tasks.features import Feature

ROW = [Feature("a", "text"), Feature("b", "number", role="reference")]
MORE = [*ROW, Feature("c", "text", role="extra", optional=True)]


@pytest.mark.parametrize(
    ("columns", "names", "expected"),
    [
        (None, [], [0, 1, 2]),
        (None, ["b", "x", "a"], [2, 0, None]),
        ({"a": 3, "b": 1}, [], [2, 0, None]),
        ({"a": "x", "b": 3, "c": "b"}, ["b", "x", "a"], [1, 2, 0]),
    ],
)
def test_columns_by_number_and_by_name(columns, names, expected):
    assert places(MORE, columns, names, 3, "a.tsv") == expected


def test_an_optional_column_need_not_be_there():
    assert places(MORE, None, [], 2, "a.tsv") == [0, 1, None]
    with pytest.raises(Broken, match="column 2 for b is not there: the first row has 1 column"):
        places(MORE, None, [], 1, "a.tsv")


@pytest.mark.parametrize(
    ("columns", "names", "told"),
    [
        ({"a": 1}, [], "`data.columns` does not say where b is"),
        ({"a": 1, "b": 2, "c": 4}, [], "column 4 for c is not there"),
        ({"a": 1, "b": "x"}, [], "read without a header"),
        ({"a": 1, "b": "y"}, ["a", "x"], "no column is called 'y'"),
        (None, ["a", "x"], "no column is called 'b'"),
    ],
)
def test_columns_that_are_not_there(columns, names, told):
    with pytest.raises(Broken) as caught:
        places(MORE, columns, names, 3, "a.tsv")
    assert told in str(caught.value)
    assert caught.value.problem.remedy


def test_keys():
    assert keys(MORE, None, "a.jsonl") == ["a", "b", "c"]
    assert keys(MORE, {"a": "x", "b": "y"}, "a.jsonl") == ["x", "y", None]
    with pytest.raises(Broken, match="knows columns by name"):
        keys(ROW, {"a": "x", "b": 2}, "a.jsonl")
