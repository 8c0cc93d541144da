from __future__ import annotations

import pytest

from pipeline.compare.tree import expanded, merged, part
from pipeline.config.document import parse


def tree(text, file="a.yaml"):
    return part(parse(text, {}), file)


def laid(base, change):
    nested, problems = expanded(tree(change, "b.yaml"))
    assert problems == []
    return merged(tree(base), nested)


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
def test_dotted_keys_are_nested_ones(text, value):
    found, problems = expanded(tree(text))
    assert (found.value, problems) == (value, [])


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a.b: 1\na: {b: 2}", ("a", "b")),
        ("a: {b: 2}\na.b: 1", ("a.b",)),
        ("a: 1\na.b: 2", ("a.b",)),
        ("a.b: {c: 1}\na: 2", ("a",)),
    ],
)
def test_a_key_that_is_given_twice_is_told_with_the_first_line(text, path):
    _, (problem,) = expanded(tree(text))
    assert (problem.path, problem.message) == (path, "given twice, first in line 1")


@pytest.mark.parametrize(
    ("base", "change", "value"),
    [
        ("a: {b: 1, c: 2}", "a: {b: 3}", {"a": {"b": 3, "c": 2}}),
        ("a: {b: 1}", "a: null", {"a": None}),
        ("a: null", "a: {b: 1}", {"a": {"b": 1}}),
        ("a: [1, 2]", "a: [3]", {"a": [3]}),
        ("a: {type: x, b: 1}", "a: {type: x, c: 2}", {"a": {"type": "x", "b": 1, "c": 2}}),
        ("a: {type: x, b: 1}", "a: {type: y, c: 2}", {"a": {"type": "y", "c": 2}}),
        # What a default type is the tree does not know: leftovers are then refused, not lost.
        ("a: {b: 1}", "a: {type: y}", {"a": {"b": 1, "type": "y"}}),
        ("a: x", "a: {type: y}", {"a": {"type": "y"}}),
        ("a: {b: {c: 1}}", "d: 2", {"a": {"b": {"c": 1}}, "d": 2}),
    ],
)
def test_changes_over_a_base(base, change, value):
    assert laid(base, change).value == value


def test_neither_is_touched():
    base, (change, _) = tree("a: {b: [1]}"), expanded(tree("a: {c: [2]}"))
    result = merged(base, change)
    result.value["a"]["b"].append(3)
    result.value["a"]["c"].append(3)
    assert base.value == {"a": {"b": [1]}}
    assert change.value == {"a": {"c": [2]}}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("a",), "a.yaml:1: a: "),
        (("a", "b"), "b.yaml:2: a.b: "),
        (("a", "c"), "a.yaml:3: a.c: "),
        (("a", "c", "unwritten", "too"), "a.yaml:3: a.c.unwritten.too: "),
        (("d", "type"), "b.yaml:3: d.type: "),
        (("d", "old"), "b.yaml:3: d.old: "),  # its own line went with the type it belonged to
        (("unwritten",), "a.yaml:1: unwritten: "),
    ],
)
def test_every_key_knows_its_file_and_line(path, place):
    result = laid("a:\n  b: 1\n  c: 2\nd: {type: x, old: 1}", "# why\na.b: 3\nd: {type: y}")
    assert str(result.place(path)) == place


def test_part_of_a_document_is_told_with_its_whole_path():
    below = part(parse("models:\n  x:\n    a.b: 1\n", {}), "m.yaml", ("models", "x"))
    assert below.value == {"a.b": 1}
    nested, _ = expanded(below)
    assert str(nested.place(("a", "b"))) == "m.yaml:3: models.x.a.b: "
    assert str(nested.place(())) == "m.yaml:2: models.x: "
