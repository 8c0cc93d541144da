"""JSON bodies: requests to arrays, outputs to JSON."""

import json

import numpy as np
import pytest
from grpc import StatusCode

from regard.serving.server.errors import ServingError
from regard.serving.server.rest_json import dump_predictions, parse_predict

ONE = {"x": "float32"}
TWO = {"a": "int32", "b": "string"}


def parse(body, types=None):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return parse_predict(text, lambda name: types or ONE)


def values(body, types=None):
    return {name: array.tolist() for name, array in parse(body, types).inputs.items()}


def test_rows_of_one_input():
    body = parse({"instances": [1.0, 2, 5.5], "signature_name": "s"})
    assert (body.signature, body.is_row_format) == ("s", True)
    assert body.inputs["x"].dtype == np.float32
    assert body.inputs["x"].tolist() == [1.0, 2.0, 5.5]
    assert values({"instances": [[[1, 2]], [[3, 4]]]}) == {"x": [[[1.0, 2.0]], [[3.0, 4.0]]]}
    assert values({"instances": [{"x": [1]}, {"x": [2]}]}) == {"x": [[1.0], [2.0]]}


def test_rows_of_several_inputs():
    rows = [{"a": 1, "b": "x"}, {"b": {"b64": "w6k="}, "a": -2}]
    assert values({"instances": rows}, TWO) == {"a": [1, -2], "b": [b"x", "é".encode()]}


def test_columns():
    assert not parse({"inputs": [[1], [2]]}).is_row_format
    assert values({"inputs": [[1], [2]]}) == {"x": [[1.0], [2.0]]}
    assert values({"inputs": 3}) == {"x": 3.0}
    assert values({"inputs": {"x": [1]}}) == {"x": [1.0]}
    columns = {"b": [["p", "q"]], "a": [], "unknown": 1}
    assert values({"inputs": columns}, TWO) == {"a": [], "b": [[b"p", b"q"]]}
    assert values({"inputs": {"b64": "YQ"}}, {"t": "string"}) == {"t": b"a"}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("float64", 2**53 - 1, 2.0**53 - 1),
        ("float64", 10**25, 1e25),
        ("int64", -(2**63), -(2**63)),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("uint32", 2**32 - 1, 2**32 - 1),
        ("bool", True, True),
    ],
)
def test_number_types(kind, value, expected):
    assert values({"inputs": [value]}, {"x": kind}) == {"x": [expected]}


@pytest.mark.parametrize(
    ("body", "types", "message"),
    [
        (b"", ONE, "not valid JSON"),
        (b'{"inputs": [NaN]}', ONE, "not valid JSON"),
        (b'"\xff"', ONE, "not valid JSON"),
        (b"[" * 10000, ONE, "not valid JSON"),
        (b"[1.0]", ONE, "not a JSON object"),
        ({"signature_name": 3, "inputs": 1}, ONE, "`signature_name` is not a string"),
        ({}, ONE, "either `instances` or `inputs`"),
        ({"instances": 1, "inputs": 2}, ONE, "either `instances` or `inputs`"),
        ({"instances": {}}, ONE, "not a list of at least one instance"),
        ({"instances": []}, ONE, "not a list of at least one instance"),
        ({"instances": [1]}, TWO, "Instance 0 is not an object with the inputs: a, b."),
        ({"instances": [{"x": 1}, 2]}, ONE, "Instance 1 is not an object with the inputs: x."),
        ({"instances": [1, {"x": 1}]}, ONE, "Instance 0 is not an object"),
        ({"instances": [{"y": 1}]}, ONE, "Instance 0 is not an object with the inputs: x."),
        ({"instances": [[1], [2, 3]]}, ONE, "Input x: a list is not of the type float32."),
        ({"instances": [[1, 2], [[1], [2]]]}, ONE, "Input x: a list is not of the type float32."),
        ({"inputs": [[1], 2]}, ONE, "Input x: a list is not of the type float32."),
        ({"inputs": json.loads("[" * 90 + "]" * 90)}, ONE, "more than 32 dimensions"),
        ({"instances": ["a"]}, ONE, 'Input x: "a" is not of the type float32.'),
        ({"instances": ["a" * 500]}, ONE, "a… is not of the type float32."),
        ({"instances": [True]}, ONE, "true is not of the type float32"),
        ({"instances": [None]}, ONE, "null is not of the type float32"),
        ({"inputs": [1.5]}, {"x": "int32"}, "1.5 is not of the type int32"),
        ({"inputs": [2**31]}, {"x": "int32"}, "out of the range of int32"),
        ({"inputs": [1e39]}, ONE, "out of the range of float32"),
        ({"inputs": {"b": "x"}}, TWO, "`inputs` is not an object with the inputs: a, b."),
        ({"inputs": 1}, TWO, "`inputs` is not an object with the inputs: a, b."),
        ({"inputs": {"a": 1, "b": {"b64": 1}}}, TWO, "is not of the type string"),
        ({"inputs": {"a": 1, "b": {"b64": "*"}}}, TWO, "the value of `b64` is not base64"),
    ],
)
def test_invalid_requests(body, types, message):
    with pytest.raises(ServingError) as caught:
        parse(body, types)
    assert caught.value.code is StatusCode.INVALID_ARGUMENT
    assert message in caught.value.message


def test_types_without_json_are_unimplemented():
    with pytest.raises(ServingError) as caught:
        parse({"inputs": [1]}, {"x": "float16"})
    assert caught.value.code is StatusCode.UNIMPLEMENTED


def dump(outputs, is_row_format):
    return json.loads(b"".join(dump_predictions(outputs, is_row_format)))


def test_dump_rows():
    assert dump({"y": np.array([2.5, 3.0], "float32")}, True) == {"predictions": [2.5, 3.0]}
    assert dump({"y": np.array([[1, 2], [3, 4]])}, True) == {"predictions": [[1, 2], [3, 4]]}
    outputs = {
        "score": np.array([-0.5, -1], "float32"),
        "tokens": np.array([[b"a", "é".encode()], [b"c", b""]], dtype=object),
    }
    rows = [{"score": -0.5, "tokens": ["a", "é"]}, {"score": -1.0, "tokens": ["c", ""]}]
    assert dump(outputs, True) == {"predictions": rows}


def test_dump_columns():
    assert dump({"y": np.array([[True], [False]])}, False) == {"outputs": [[True], [False]]}
    both = {"n": np.array(3, "int64"), "t": np.array("é".encode(), dtype=object)}
    assert dump(both, False) == {"outputs": {"n": 3, "t": "é"}}


def test_floats_survive_the_round_trip():
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        numbers = (rng.normal(size=300) * 10.0 ** rng.integers(-30, 30, 300)).astype(dtype)
        back = np.array(dump({"y": numbers}, True)["predictions"], dtype)
        np.testing.assert_array_equal(back, numbers)
    assert dump({"y": np.array([np.nan, np.inf])}, False) == {"outputs": [None, None]}


@pytest.mark.parametrize("is_row_format", [True, False])
def test_bytes_are_written_in_base64(is_row_format):
    outputs = {"raw_bytes": np.array([b"\xff\x00"], dtype=object)}
    assert list(dump(outputs, is_row_format).values()) == [[{"b64": "/wA="}]]


def test_dump_without_rows():
    empty = np.zeros((0, 3), "float32")
    assert dump({"y": empty}, True) == {"predictions": []}
    assert dump({"y": empty}, False) == {"outputs": []}


@pytest.mark.parametrize(
    "outputs",
    [{"y": np.float32(1).reshape(())}, {"y": np.zeros(2), "z": np.zeros(3)}],
)
def test_outputs_without_a_common_batch_cannot_be_written_by_row(outputs):
    with pytest.raises(ServingError, match="no common first dimension"):
        dump(outputs, True)
