from __future__ import annotations

import dataclasses
import json

import pytest

from components.reporter import words
from components.reporter.facts import About, Facts
from tests.components.reporter import runs


@pytest.mark.parametrize(
    ("value", "scale", "told"),
    [(35.606, 100.0, "35.61"), (0.9941, 1.0, "0.9941"), (None, 1.0, "undefined")],
)
def test_numbers(value, scale, told):
    assert words.number(value, scale) == told
    assert words.number(float("nan")) == "undefined"


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.0, "0%"), (1.0, "100%"), (0.0123, "1.2%"), (0.99951, "99.95%"), (1e-5, "0.001%")],
)  # fmt: skip
def test_shares(value, told):
    assert words.share(value) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, ""),
        (0.04, "0.0 s"),
        (9.96, "10 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_durations(seconds, told):
    assert words.duration(seconds) == told


def test_sizes():
    assert words.size(None) == ""
    assert words.size(812_400_000) == "812 MB"
    assert words.size(2_140_000_000) == "2.1 GB"


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (
            {"decoder": {"type": "luong"}, "attention": {"score": {"type": "scaled_dot"}}},
            "luong translation model with scaled dot attention",
        ),
        (
            {
                "decoder": {"type": "bahdanau"},
                "attention": {"score": "additive", "alignment": {"type": "hard"}},
            },
            "bahdanau translation model with hard additive attention",
        ),
        ({"decoder": {"type": "a"}, "attention": None}, "a translation model without attention"),
        ({"decoder": {"type": "transformer"}}, "transformer translation model"),
        ({"encoder": {"type": "recurrent"}}, "recurrent translation model"),
        ({"decoder": {"score": "additive"}}, "translation model with additive attention"),
        ({}, "translation model"),
    ],
)  # fmt: skip
def test_names_of_models(model, name):
    assert words.model_name("translation", {"model": model}) == name


def test_one_sentence_about_a_run(facts):
    assert words.headline(facts) == (
        "A Luong translation model with general attention (12,345 parameters), trained on 100 rows "
        "of mine in 6 epochs (600 steps) and 1 min 05 s, reaches BLEU 40.00 (39.00 to 41.00) on 20 "
        "rows it never saw; it was blessed and pushed as version 2."
    )


def test_a_model_that_was_not_blessed(facts, tmp_path):
    runs.put(tmp_path, "blessing", "blessing.json", {"blessed": False, "sentence": "No."})
    runs.put(tmp_path, "pushed", "pushed.json", {"pushed": False})
    assert words.headline(facts).endswith("rows it never saw; it was not blessed.")


def test_a_run_that_failed_while_it_trained(tmp_path):
    about = About("mine", "similarity", {}, failure={"node": "Trainer", "error": "no memory"})
    told = words.headline(Facts(about, {}))
    assert told == "A similarity model has not been judged: the run failed at Trainer."
    told = words.headline(Facts(dataclasses.replace(about, failure={}), {}))
    assert told == "A similarity model has not been judged."


def test_an_undefined_metric_has_no_interval(facts, tmp_path):
    content = json.loads((tmp_path / "evaluation" / "metrics.json").read_text())
    content["metrics"]["bleu"] |= {"value": float("nan"), "interval": None}
    runs.put(tmp_path, "evaluation", "metrics.json", content)
    assert "reaches BLEU undefined on 20 rows" in words.headline(facts)
