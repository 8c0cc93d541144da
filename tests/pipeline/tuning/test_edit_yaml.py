"""Editing of YAML text: values change, comments and layout stay."""

import pytest

from regard.pipeline.config.document import parse
from regard.pipeline.tuning.tuned_config import edit_yaml

TEXT = """\
# Title.
name: a   # the name
model:
  # How deep.
  encoder: {type: recurrent, layers: 1} # one is enough
  attention: # score and alignment
    score: general
    alignment: soft   # all positions

# How it learns.
training:
  learning_rate: 0.1   # as in the paper
  max_epochs: 3
  words:
    - "a"
    - b
"""


@pytest.mark.parametrize(
    ("values", "old", "new"),
    [
        ({}, "", ""),
        ({"training.learning_rate": 0.5}, "learning_rate: 0.1", "learning_rate: 0.5"),
        ({"training.max_epochs": 7}, "max_epochs: 3", "max_epochs: 7"),
        ({"model.encoder.layers": 3}, "layers: 1}", "layers: 3}"),
        ({"model.encoder.units": 9}, "layers: 1}", "layers: 1, units: 9}"),
        ({"model.attention.score": "dot"}, "score: general", "score: dot"),
        ({"training.seed": 5}, "    - b\n", "    - b\n  seed: 5\n"),
        ({"training.words.1": "c"}, "    - b\n", "    - c\n"),
        ({"tune.seed": 3, "tune.k": 4}, "    - b\n", "    - b\ntune:\n  seed: 3\n  k: 4\n"),
    ],
)
def test_edit_changes_one_place(values, old, new):
    assert edit_yaml(TEXT, values) == TEXT.replace(old, new)


def test_edit_changes_an_item_of_a_list():
    text = "model:\n  encoder:   # a stack\n    - {type: embedding}\n    - units: 3\n"
    values = {"model.encoder.1.units": 4, "model.encoder.0.positions": "learned"}
    expected = text.replace("embedding}", "embedding, positions: learned}")
    assert edit_yaml(text, values) == expected.replace("units: 3", "units: 4")


def test_edit_replaces_a_section():
    value = parse(edit_yaml(TEXT, {"model.attention": {"score": "dot", "window": None}}), {}).value
    assert value["model"]["attention"] == {"score": "dot", "window": None}


@pytest.mark.parametrize(
    "value",
    [
        *(1, 0, True, False, None, 0.1, 1e-05, 1e22, -2.5, "soft", "local_p", "no", "null", "1e-3"),
        *("5", "a: b", "a #b", "${HOME}", "$x", "", "ä", "it's", 'a "b"', "{x}", [1, None, "y"]),
        {"a": {"b": [True, 0.5]}, "c": "x"},
    ],
)
@pytest.mark.parametrize("text", ["k: old\n", "{k: old}\n", "k: {a: 1}\n", "other: 1\n"])
def test_edited_value_is_read_back(text, value):
    document = parse(edit_yaml(text, {"k": value}), {})
    assert document.problems == []
    assert document.value["k"] == value
    assert type(document.value["k"]) is type(value)
