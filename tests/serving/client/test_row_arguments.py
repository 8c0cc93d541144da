"""Rows that are misread in silence unless the client refuses them, without a server."""

import numpy as np
import pandas
import pyarrow
import pytest

from regard.serving.client import Client, ClientError
from regard.serving.client.conversion import ClientSignature, Input, as_list, split_requests

TEXTS = ClientSignature({"source": Input("string", 1)}, {})
POINTS = ClientSignature({"points": Input("float", 3), "points_length": Input("int32", 1)}, {})


@pytest.mark.parametrize(
    "rows",
    [
        "a sentence",
        b"an image",
        bytearray(b"an image"),
        memoryview(b"an image"),
        np.str_("a sentence"),
        np.array("a sentence"),
        {"source": "a sentence"},
        {"a sentence", "another"},
        frozenset({"a sentence"}),
        pandas.DataFrame({"source": ["a sentence"]}),
        pyarrow.table({"source": ["a sentence"]}),
        None,
        7,
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows_that_are_no_list_are_refused_before_anything_is_sent(rows):
    with Client("grpc://127.0.0.1:1", "m") as client:
        for call in (
            lambda: client.predict(rows),
            lambda: client.align(rows),
            lambda: client.score(rows, ["b"]),
            lambda: client.score(["a"], rows),
            lambda: client.constrain(rows),
            lambda: client.constrain(["a"], phrases=rows),
        ):
            with pytest.raises(TypeError, match=r"must be a list, not"):
                call()


@pytest.mark.parametrize(
    "convert",
    [tuple, iter, np.array, pandas.Series, lambda rows: (row for row in rows)],
    ids=["tuple", "iterator", "array", "series", "generator"],
)
def test_ordered_rows_of_any_type(convert):
    (inputs,) = split_requests(TEXTS, as_list(convert(["abc", "x"]), "rows"), 10)
    assert inputs["source"].tolist() == [b"abc", b"x"]


@pytest.mark.parametrize("value", [None, 7, ["a", "b"], np.array(["a"])])
def test_texts_of_another_type_are_named(value):
    with pytest.raises(ClientError, match="source") as caught:
        list(split_requests(TEXTS, ["abc", {"source": value}], 10))
    assert caught.value.code == "INVALID_ARGUMENT"
    assert "Row 1" in caught.value.message


def test_points_of_one_row_are_not_rows_of_one_point():
    points = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.1]], np.float32)
    with pytest.raises(ClientError, match="Row 0"):
        list(split_requests(POINTS, as_list(points, "rows"), 10))
    (inputs,) = split_requests(POINTS, [points, []], 10)
    assert inputs["points_length"].tolist() == [3, 0]
