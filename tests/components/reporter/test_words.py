from __future__ import annotations

import dataclasses
import json

import pytest

from components.reporter import words
from components.reporter.facts import About, Facts
from tests.components.reporter import runs


@pytest.mark.parametrize(
    ("value", "told"),
    [
        *((0.0, "0%"), (1.0, "100%"), (0.0123, "1.2%"), (0.5, "50%"), (0.9951, "99.5%")),
        *((0.99999, "over 99.9%"), (0.00012, "0.012%"), (1e-7, "under 0.01%")),
    ],
)
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
        "A Luong translation model with general attention (12,345 parameters), trained on 90 rows "
        "of mine in 600 steps (6 whole epochs) and 1 min 05 s, reaches BLEU 40.00 (39.00 to 41.00) "
        "on 20 test rows; it was blessed and pushed as version 2."
    )


def test_a_model_that_was_not_blessed(facts, tmp_path):
    runs.put(tmp_path, "blessing", "blessing.json", {"blessed": False, "sentence": "No."})
    runs.put(tmp_path, "pushed", "pushed.json", {"pushed": False})
    assert words.headline(facts).endswith("on 20 test rows; it was not blessed.")


def test_a_run_that_failed_while_it_trained(tmp_path):
    about = About("mine", "similarity", {}, failure={"node": "Trainer", "error": "no memory"})
    told = words.headline(Facts(about, {}))
    assert told == "A similarity model has not been judged: the run failed at Trainer."
    for status, end in [
        ("", "."),
        ("killed", ": the run was killed."),
        ("running", ": the run goes on."),
    ]:
        now = dataclasses.replace(about, failure={}, status=status)
        assert words.headline(Facts(now, {})) == f"A similarity model has not been judged{end}"


def test_a_failure_after_the_evaluation_is_told_first(facts, tmp_path):
    failed = dataclasses.replace(facts.about, failure={"node": "ServingCheck", "error": "x"})
    told = words.headline(Facts(failed, facts.folders))
    assert told.endswith("on 20 test rows: the run failed at ServingCheck.")


def test_an_undefined_metric_has_no_interval(facts, tmp_path):
    content = json.loads((tmp_path / "evaluation" / "metrics.json").read_text())
    content["metrics"]["bleu"] |= {"value": float("nan"), "interval": None}
    runs.put(tmp_path, "evaluation", "metrics.json", content)
    assert "reaches BLEU undefined on 20 test rows" in words.headline(facts)
