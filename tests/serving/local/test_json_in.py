"""Bodies of REST requests: the tensors they become, and the texts of their errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

from serving.local.json_in import predict_request
from serving.local.status import Code, ServingError

ONE = {"x": "float"}
TWO = {"a": "int32", "b": "string"}


def asked(body, kinds=None):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return predict_request(text, lambda name: kinds or ONE)


def values(body, kinds=None):
    _, tensors, _ = asked(body, kinds)
    return {name: tensor.tolist() for name, tensor in tensors.items()}


def test_rows_of_one_input():
    signature, tensors, by_rows = asked({"instances": [1.0, 2, 5.5], "signature_name": "s"})
    assert (signature, by_rows) == ("s", True)
    assert tensors["x"].dtype == np.float32
    assert tensors["x"].tolist() == [1.0, 2.0, 5.5]
    assert values({"instances": [[[1, 2]], [[3, 4]]]}) == {"x": [[[1.0, 2.0]], [[3.0, 4.0]]]}
    assert values({"instances": [{"x": [1]}, {"x": [2]}]}) == {"x": [[1.0], [2.0]]}


def test_rows_of_several_inputs():
    rows = [{"a": 1, "b": "x"}, {"b": {"b64": "w6k="}, "a": -2}]
    assert values({"instances": rows}, TWO) == {"a": [1, -2], "b": [b"x", "é".encode()]}


def test_columns():
    assert asked({"inputs": [[1], [2]]})[2] is False
    assert values({"inputs": [[1], [2]]}) == {"x": [[1.0], [2.0]]}
    assert values({"inputs": 3}) == {"x": 3.0}
    assert values({"inputs": {"x": [1]}}) == {"x": [1.0]}
    assert values({"inputs": {"b": [["p", "q"]], "a": [], "unknown": 1}}, TWO) == {
        "a": [],
        "b": [[b"p", b"q"]],
    }
    assert values({"inputs": {"b64": "YQ"}}, {"t": "string"}) == {"t": b"a"}


def test_only_the_first_value_of_a_body_is_read():
    assert values(b'{"inputs": [1]} and then some') == {"x": [1.0]}


def test_numbers_that_are_none():
    (found,) = values(b'{"inputs": [NaN, Infinity, -Infinity, Inf, -Inf]}').values()
    assert np.isnan(found[0])
    assert found[1:] == [np.inf, -np.inf, np.inf, -np.inf]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("double", 2**53 - 1, 2.0**53 - 1),
        ("double", 10**25, 1e25),
        ("int64", -(2**63), -(2**63)),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("uint32", 2**32 - 1, 2**32 - 1),
        ("int8", 300, 44),
        ("bool", True, True),
    ],
)
def test_types(kind, value, expected):
    assert values({"inputs": [value]}, {"x": kind}) == {"x": [expected]}


@pytest.mark.parametrize(
    ("body", "kinds", "message"),
    [
        (b"", ONE, "JSON Parse error: The document is empty"),
        (b"  ", ONE, "JSON Parse error: The document is empty. at offset: 2"),
        (b"{", ONE, "JSON Parse error: Missing a name for object member. at offset: 1"),
        (b'{"inputs": [1,]}', ONE, "JSON Parse error: Invalid value. at offset: 14"),
        (b'"\xff"', ONE, "JSON Parse error: Invalid encoding in string. at offset: 1"),
        (b"[" * 10000, ONE, "JSON Parse error: Terminate parsing due to Handler error."),
        (b"[1.0]", ONE, "JSON Value: [\n    1.0\n] Is not object"),
        (b"1e40 x", ONE, "JSON Value: 1e+40 Is not object"),
        ({"signature_name": 3}, ONE, "'signature_name' key must be a string value."),
        ({}, ONE, "Missing 'inputs' or 'instances' key"),
        (
            {"instances": 1, "inputs": 2},
            ONE,
            'JSON Value: {\n    "instances": 1,\n    "inputs": 2\n} Not formatted correctly'
            " expecting only one of 'inputs' or 'instances' keys to exist ",
        ),
        ({"instances": {}}, ONE, "Expecting 'instances' to be an list/array"),
        ({"instances": []}, ONE, "No values in 'instances' array"),
        (
            {"instances": [1]},
            TWO,
            "instances is a plain list, but expecting list of objects as multiple input tensors"
            " required as per tensorinfo_map",
        ),
        (
            {"instances": [{"x": 1}, 2]},
            ONE,
            "Expecting object but got list at item 1 of input list",
        ),
        (
            {"instances": [1, {"x": 1}]},
            ONE,
            "Expecting value/list but got object at item 1 of input list",
        ),
        (
            {"instances": [{"y": 1}]},
            ONE,
            "Failed to process element: 0 key: y of 'instances' list. Error: INVALID_ARGUMENT:"
            " JSON object: does not have named input: y",
        ),
        (
            {"instances": [{"a": 1}]},
            TWO,
            "Failed to process element: 0 of 'instances' list. JSON object: {\n"
            '    "a": 1\n} keys must be equal to: a,b',
        ),
        ({"instances": [[1], [2, 3]]}, ONE, "Expecting tensor size: 1 but got: 2"),
        ({"instances": [[1, 2], [[1], [2]]]}, ONE, "Expecting shape [2] but got: [2,1]"),
        (
            {"instances": ["a"]},
            ONE,
            "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: JSON Value:"
            ' "a" Type: String is not of expected type: float',
        ),
        ({"instances": [True]}, ONE, "Type: True is not of expected type: float"),
        ({"instances": [None]}, ONE, "JSON Value: null Type: Null is not of expected type: float"),
        ({"inputs": [1.5]}, {"x": "int32"}, "1.5 Type: Number is not of expected type: int32"),
        ({"inputs": [2**31]}, {"x": "int8"}, "Type: Number is not of expected type: int8"),
        ({"inputs": [[1, [2]]]}, ONE, "Encountered list at unexpected level: 2 expected < 2"),
        (
            {"inputs": [[1], [2, 3]]},
            ONE,
            "Encountered list at unexpected size: 2 at level: 1 expected size: 1",
        ),
        (
            {"inputs": [[1], 2]},
            ONE,
            "JSON Value: 2 found at incorrect level: 2 in the JSON DOM. Expected at level: 2",
        ),
        (
            {"inputs": [16777216]},
            ONE,
            "Cannot convert JSON value: 16777216 to float without loss of precision.",
        ),
        ({"inputs": [1e39]}, ONE, "1e+39 to float without loss of precision."),
        ({"inputs": {"b": "x"}}, TWO, "Missing named input: a in 'inputs' object."),
        (
            {"inputs": 1},
            TWO,
            "inputs is a plain value/list, but expecting an object as multiple input tensors"
            " required as per tensorinfo_map",
        ),
        (
            {"inputs": {"a": 1, "b": {"b64": 1}}},
            TWO,
            'JSON Value: {\n    "b64": 1\n} not formatted correctly for base64 data',
        ),
        ({"inputs": {"a": 1, "b": {"b64": "*"}}}, TWO, "Unable to base64 decode"),
    ],
)
def test_errors(body, kinds, message):
    with pytest.raises(ServingError) as caught:
        asked(body, kinds)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert message in caught.value.message


def test_types_that_json_has_not_are_unimplemented():
    with pytest.raises(ServingError) as caught:
        asked({"inputs": [1]}, {"x": "half"})
    assert caught.value.code is Code.UNIMPLEMENTED
    assert caught.value.message == "Conversion of JSON Value: 1 to type: half"


def test_what_is_shown_of_a_value_is_short():
    with pytest.raises(ServingError) as caught:
        asked({"é" * 500: 1, "instances": []})
    assert len(caught.value.message) < 400
