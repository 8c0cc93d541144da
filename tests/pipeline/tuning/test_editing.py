"""Values put into YAML text: nothing else of it changes."""

import pytest

from pipeline.config.document import parse
from pipeline.tuning.editing import edited, in_yaml

TEXT = """\
# What it is for.
name: a   # the name
model:
  # How deep.
  encoder: {type: recurrent, layers: 1}   # one is enough
  attention:      # how it looks
    score: general
    alignment: soft   # all of it
  # Nothing follows.

training:
  learning_rate: ${RATE:-0.1}   # as the paper has it
  clip_norm:
  max_epochs: 3
search: {}
"""


@pytest.mark.parametrize(
    ("values", "old", "new"),
    [
        ({"training.learning_rate": 1e-05}, "${RATE:-0.1} ", "1e-05 "),
        ({"training.max_epochs": 7}, "max_epochs: 3", "max_epochs: 7"),
        ({"training.clip_norm": 2.0}, "clip_norm:", "clip_norm: 2.0"),
        ({"model.encoder.layers": 3}, "layers: 1}", "layers: 3}"),
        ({"model.encoder.units": 9}, "{type", "{units: 9, type"),
        ({"search.type": "beam"}, "search: {}", "search: {type: beam}"),
        (
            {"model.dropout": 0.3},
            "model:\n  # How deep.\n",
            "model:\n  dropout: 0.3\n  # How deep.\n",
        ),
        ({"model.attention.score": "dot"}, "score: general", "score: dot"),
        (
            {"model.attention": {"score": "dot", "window": None}},
            "    score: general\n    alignment: soft   # all",
            "    {score: dot, window: null}   # all",
        ),
        ({"training.ema.decay": 0.9}, "  learning_rate", "  ema: {decay: 0.9}\n  learning_rate"),
    ],
)
def test_one_place_changes(values, old, new):
    assert TEXT.count(old) == 1
    assert edited(TEXT, values) == TEXT.replace(old, new)


def test_a_section_that_is_not_there_comes_last():
    found = edited(TEXT, {"tune.seed": 3, "tune.trials": 4})
    assert found == f"{TEXT}\ntune: {{trials: 4, seed: 3}}\n"


def test_several_values():
    values = {"model.encoder.layers": 2, "model.dropout": 0.25, "training.learning_rate": 0.5}
    found = parse(edited(TEXT, values), {}).value
    assert found["model"]["encoder"] == {"type": "recurrent", "layers": 2}
    assert found["model"]["dropout"] == 0.25
    assert found["training"]["learning_rate"] == 0.5


@pytest.mark.parametrize(
    "value",
    [
        *(1, 0, True, False, None, 0.1, 1e-05, 1e22, -2.5, "soft", "local_p", "no", "null", "1e-3"),
        *("5", "a: b", "a #b", "${HOME}", "$x", "", "ä", "it's", 'a "b"', "{x}", [1, None, "y"]),
        {"a": {"b": [True, 0.5]}, "c": "x"},
    ],
)
@pytest.mark.parametrize("text", ["k: old\n", "{k: old}\n", "k: {a: 1}\n", "other: 1\n"])
def test_what_is_written_is_read_back(text, value):
    document = parse(edited(text, {"k": value}), {})
    assert document.problems == []
    assert document.value["k"] == value
    assert type(document.value["k"]) is type(value)


def test_in_yaml():
    assert in_yaml({"score": "dot", "depth": [1, 2.0]}) == "{score: dot, depth: [1, 2.0]}"
