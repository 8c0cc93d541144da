from __future__ import annotations

from components.corpus_gen.references import joined
from models.tasks.features import Feature

CAPTIONED = [
    Feature("image", "image"),
    Feature("caption", "text", role="reference", several=True),
    Feature("by", "text", role="extra", optional=True),
]


def test_rows_with_the_same_input_become_one():
    rows = [
        (1, ["a.jpg", ["a dog"], "x"]),
        (2, ["b.jpg", ["a cat"], None]),
        (4, ["a.jpg", ["a dog", "one dog"], "y"]),
    ]
    assert list(joined(rows, CAPTIONED)) == [
        (1, ["a.jpg", ["a dog", "a dog", "one dog"], "x"]),
        (2, ["b.jpg", ["a cat"], None]),
    ]


def test_all_inputs_must_be_the_same():
    features = [Feature("text", "text"), Feature("at", "points"), CAPTIONED[1]]
    rows = [
        (1, [" caf\u00e9", [0.1, 0.0], ["one"]]),
        (2, ["cafe\u0301", [0.1, 0.0], ["two"]]),
        (3, ["caf\u00e9", [0.1, 0.5], ["three"]]),
    ]
    found = [(line, values[2]) for line, values in joined(rows, features)]
    assert found == [(1, ["one", "two"]), (3, ["three"])]


def test_a_reference_that_is_missing_adds_nothing():
    features = [Feature("text", "text"), Feature("more", "text", several=True, optional=True)]
    rows = [(1, ["a", None]), (2, ["a", ["x"]]), (3, ["a", None]), (4, ["b", None])]
    assert list(joined(rows, features)) == [(1, ["a", ["x"]]), (4, ["b", None])]
