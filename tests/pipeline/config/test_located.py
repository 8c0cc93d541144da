"""Merging of located mappings."""

import pytest

from regard.pipeline.config.document import parse
from regard.pipeline.config.located import located, merge


def read(text, file="a.yaml"):
    return located(parse(text, {}), file)


def merged(base, change):
    changes, duplicates = read(change, "b.yaml")
    assert duplicates == []
    return merge(read(base)[0], changes)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b: 1", {"a": {"b": 1}}),
        ("a.b: 1\na.c: 2", {"a": {"b": 1, "c": 2}}),
        ("a: {b.c: 1}\na.d: 2", {"a": {"b": {"c": 1}, "d": 2}}),
        ("a.b: {}", {"a": {"b": {}}}),
        ("a.b: null", {"a": {"b": None}}),
        ("a: [1, {b.c: 2}]", {"a": [1, {"b.c": 2}]}),
    ],
)
def test_dotted_keys_are_nested(text, value):
    mapping, duplicates = read(text)
    assert (mapping.value, duplicates) == (value, [])


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("a.b: 1\na: {b: 2}", "a.b"),
        ("a: {b: 2}\na.b: 1", "a.b"),
        ("a: 1\na.b: 2", "a.b"),
        ("a.b: {c: 1}\na: 2", "a"),
    ],
)
def test_duplicate_keys(text, key):
    _, (message,) = read(text)
    assert message == f"a.yaml:2: {key}: duplicate key, first in line 1"


@pytest.mark.parametrize(
    ("base", "change", "value"),
    [
        ("a: {b: 1, c: 2}", "a: {b: 3}", {"a": {"b": 3, "c": 2}}),
        ("a: {b: 1}", "a: null", {"a": None}),
        ("a: null", "a: {b: 1}", {"a": {"b": 1}}),
        ("a: [1, 2]", "a: [3]", {"a": [3]}),
        ("a: {type: x, b: 1}", "a: {type: x, c: 2}", {"a": {"type": "x", "b": 1, "c": 2}}),
        ("a: {type: x, b: 1}", "a: {type: y, c: 2}", {"a": {"type": "y", "c": 2}}),
        # The default type is unknown here; keys of another type are rejected later.
        ("a: {b: 1}", "a: {type: y}", {"a": {"b": 1, "type": "y"}}),
        ("a: x", "a: {type: y}", {"a": {"type": "y"}}),
        ("a: {b: {c: 1}}", "d: 2", {"a": {"b": {"c": 1}}, "d": 2}),
    ],
)
def test_merge(base, change, value):
    assert merged(base, change).value == value


def test_merge_modifies_neither_argument():
    (base, _), (change, _) = read("a: {b: [1]}"), read("a: {c: [2]}")
    value = merge(base, change).value
    value["a"]["b"].append(3)
    value["a"]["c"].append(3)
    assert base.value == {"a": {"b": [1]}}
    assert change.value == {"a": {"c": [2]}}


@pytest.mark.parametrize(
    ("change", "references"),
    [
        ("d: 1", {("a", "b"): "X", ("a", "c", 0): "X", ("t", "x"): "X"}),
        ("a.b: secret", {("a", "c", 0): "X", ("t", "x"): "X"}),
        ("a: secret", {("t", "x"): "X"}),
        ("a: {}\nt: {type: two}", {("a", "b"): "X", ("a", "c", 0): "X"}),
        (
            "a.b: ${Y}\nt.y: ${Y}\na.c: [1, '${Y}']",
            {("a", "b"): "Y", ("t", "x"): "X"} | {("t", "y"): "Y", ("a", "c", 1): "Y"},
        ),
    ],
)
def test_a_replaced_value_refers_to_no_variable(change, references):
    variables = {"X": "secret", "Y": "secret"}
    text = "base:\n  a.b: ${X}\n  a.c: ['${X}']\n  t: {type: one, x: 'a${X}'}\n"
    base, _ = located(parse(text, variables), "a.yaml", ("base",))
    changes, _ = located(parse(change, variables), "b.yaml")
    expected = {path: {name: "secret"} for path, name in references.items()}
    assert merge(base, changes).references == expected


@pytest.mark.parametrize(
    ("path", "location"),
    [
        (("a",), "b.yaml:2: a: "),
        (("a", "b"), "b.yaml:2: a.b: "),
        (("a", "c"), "a.yaml:3: a.c: "),
        (("a", "c", "unwritten", "too"), "a.yaml:3: a.c.unwritten.too: "),
        (("d", "type"), "b.yaml:3: d.type: "),
        (("unwritten",), "a.yaml:1: unwritten: "),
    ],
)
def test_location(path, location):
    result = merged("a:\n  b: 1\n  c: 2\nd: {type: x, old: 1}", "# why\na.b: 3\nd: {type: y}")
    assert result.location(path) == location


def test_location_in_a_part_of_a_document():
    document = parse("models:\n  x:\n    a.b: [1,\n 2]\n", {})
    mapping, _ = located(document, "m.yaml", ("models", "x"))
    assert mapping.value == {"a": {"b": [1, 2]}}
    assert mapping.location(("a", "b")) == "m.yaml:3: models.x.a.b: "
    assert mapping.location(("a", "b", 1)) == "m.yaml:4: models.x.a.b.1: "
    assert mapping.location(()) == "m.yaml:2: models.x: "
