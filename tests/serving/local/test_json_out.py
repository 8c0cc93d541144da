"""Answers as REST bodies, letter by letter as TensorFlow Serving lays them out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from serving.local.json_out import by_columns, by_rows, error
from serving.local.json_text import decimal, string
from serving.local.status import Code, ServingError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(2.5), "2.5"),
        (np.float32(3), "3.0"),
        (np.float32(0.2), "0.2"),
        (np.float32(1 / 3), "0.333333343"),
        (np.float32(9e6), "9e+06"),
        (np.float32(0.00003), "3e-05"),
        (np.float32(16777216), "16777216.0"),
        (np.float32(-0.0), "-0.0"),
        (np.float64(1 / 3), "0.33333333333333331"),
        (np.float64(0.1), "0.1"),
        (np.float32("nan"), "NaN"),
        (np.float32("-inf"), "-Infinity"),
        (np.float64("inf"), "Infinity"),
    ],
)
def test_decimals(value, text):
    assert decimal(value).decode() == text


def test_decimals_come_back():
    draw = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        for value in (draw.normal(size=300) * 10.0 ** draw.integers(-30, 30, 300)).astype(dtype):
            assert dtype(decimal(value).decode()) == value


def test_strings_are_escaped_as_little_as_can_be():
    assert string('a"b\\c/\n\t\x01\x1f\x7fé').decode() == '"a\\"b\\\\c/\\n\\t\\u0001\\u001F\x7fé"'
    assert string(b"\xff") == b'"\xff"'


def test_rows_of_one_output():
    assert by_rows({"y": np.array([2.5, 3.0, 4.5], "float32")}).decode() == (
        '{\n    "predictions": [2.5, 3.0, 4.5\n    ]\n}'
    )
    assert by_rows({"y": np.array([[1, 2], [3, 4]])}).decode() == (
        '{\n    "predictions": [[1, 2], [3, 4]\n    ]\n}'
    )


def test_rows_of_several_outputs():
    outputs = {
        "score": np.array([-0.5, -1], "float32"),
        "pieces": np.array([[b"a", b"b"], [b"c", b""]], dtype=object),
    }
    assert by_rows(outputs).decode() == (
        '{\n    "predictions": [\n        {\n            "score": -0.5,\n'
        '            "pieces": ["a", "b"]\n        },\n        {\n            "score": -1.0,\n'
        '            "pieces": ["c", ""]\n        }\n    ]\n}'
    )


def test_columns():
    assert by_columns({"y": np.array([[True], [False]])}).decode() == (
        '{\n    "outputs": [\n        [\n            true\n        ],\n        [\n'
        "            false\n        ]\n    ]\n}"
    )
    both = {"n": np.array(3, "int64"), "t": np.array("é".encode(), dtype=object)}
    assert (
        by_columns(both).decode()
        == '{\n    "outputs": {\n        "n": 3,\n        "t": "é"\n    }\n}'
    )


def test_bytes_are_in_base64():
    outputs = {"raw_bytes": np.array([b"\xff\x00"], dtype=object)}
    assert json.loads(by_columns(outputs)) == {"outputs": [{"b64": "/wA="}]}
    assert json.loads(by_rows(outputs)) == {"predictions": [{"b64": "/wA="}]}


def test_no_rows_and_no_columns():
    none = np.zeros((0, 3), "float32")
    assert by_rows({"y": none}).decode() == '{\n    "predictions": []\n}'
    assert json.loads(by_columns({"y": none})) == {"outputs": []}


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"y": np.float32(1).reshape(())}, "Tensor name: y has no shape information "),
        (
            {"y": np.zeros(2), "z": np.zeros(3)},
            "Tensor name: z has inconsistent batch size: 3 expecting: 2",
        ),
        ({"y": np.zeros(1, "float16")}, "Failed to write JSON value for tensor type: half"),
    ],
)
def test_errors(outputs, message):
    with pytest.raises(ServingError) as caught:
        by_rows(outputs)
    assert (caught.value.code, caught.value.message) == (Code.INVALID_ARGUMENT, message)


def test_an_error_has_a_body_of_its_own():
    assert error('no "x"') == b'{\n    "error": "no \\"x\\""\n}'
