from __future__ import annotations

import math

import pytest
import tensorflow_model_analysis as tfma

from tests.components.evaluator.evaluating import (
    BAD,
    CONFIG,
    GOOD,
    NUMBERS,
    evaluate,
    evaluate_numbers,
)

METRICS = CONFIG["metrics"]
PATTERNS = {"long": {"feature": "source", "matches": "one|last"}}
SLICES = {"by": ["source"], "patterns": PATTERNS, "oov": [0.0, 0.5], "thresholds": {}}
WHOLE = {**CONFIG, "samples": 50, "slices": SLICES, "baseline": "lead_1"}
WORDS = {"source": ["one", "two", "three", "four", "five", "a", "the", "red"]}


@pytest.fixture
def evaluation(tmp_path):
    """The evaluation of a model, production and a baseline, with slices of every kind."""
    return evaluate(tmp_path, WHOLE, GOOD, BAD, words=WORDS)


def load(evaluation, model=None) -> dict:
    """Return the metrics of each slice by the slice's key."""
    result = tfma.load_eval_result(str(evaluation.folder / "tfma"), model_name=model)
    return result.get_metrics_for_all_slices()


def slices(evaluation) -> dict:
    """Return the scores in our files by TFMA's key of the slice."""
    metrics_by_slice = {}
    for part in evaluation.read("slices.json")["slices"]:
        metrics_by_slice[((part["kind"], part["name"]),)] = part
    for part in evaluation.read("by_length.json")["buckets"]:
        low, high = part["low"], part["high"]
        name = f"{low}+" if high is None else f"{low}-{high}"
        metrics_by_slice[(("length", name),)] = part
    return metrics_by_slice


MODELS = [("candidate", "candidate"), ("production", "production"), ("lead_1", "baseline")]


@pytest.mark.parametrize(("model", "ours"), MODELS)
def test_metrics_of_all_rows_equal_metrics_json(evaluation, model, ours):
    content = evaluation.read("metrics.json")
    metrics = (content if ours == "candidate" else content[ours])["metrics"]
    metrics_by_slice = load(evaluation, model)[()]
    assert metrics_by_slice["example_count"] == {"doubleValue": 4.0}
    for name in METRICS:
        interval = metrics[name]["interval"]
        assert metrics_by_slice[name] == {
            "boundedValue": {
                "value": metrics[name]["value"],
                "lowerBound": interval["low"],
                "upperBound": interval["high"],
            }
        }


@pytest.mark.parametrize(("model", "ours"), MODELS)
def test_metrics_of_slices_equal_our_files(evaluation, model, ours):
    metrics_by_slice, expected = load(evaluation, model), slices(evaluation)
    assert set(metrics_by_slice) == {(), *expected}
    kinds = {key[0][0] for key in expected}
    assert kinds == {"source", "pattern", "length", "oov"}
    assert {key[0][1] for key in expected if key[0][0] == "oov"} == {"0", "0-0.5", "0.5+"}
    for key, part in expected.items():
        assert metrics_by_slice[key]["example_count"] == {"doubleValue": part["rows"]}
        for name in METRICS:
            assert metrics_by_slice[key][name] == {"doubleValue": part["scores"][ours][name]}


def test_the_default_model_is_the_candidate(evaluation):
    metrics_by_slice, production = load(evaluation), load(evaluation, "production")
    assert metrics_by_slice == load(evaluation, "candidate")
    for key in slices(evaluation):
        ours, theirs = (one[key]["chrf"]["doubleValue"] for one in (metrics_by_slice, production))
        assert metrics_by_slice[key]["chrf_diff"] == {"doubleValue": ours - theirs}


def test_a_candidate_without_production(tmp_path):
    evaluation = evaluate(tmp_path, CONFIG)
    metrics_by_slice = load(evaluation)
    assert metrics_by_slice == load(evaluation, "candidate")
    value = evaluation.read("metrics.json")["metrics"]["bleu"]["value"]
    assert metrics_by_slice[()]["bleu"] == {"doubleValue": value}  # no samples, no interval


def test_the_configuration_lists_models_and_slices(evaluation):
    result = tfma.load_eval_result(str(evaluation.folder / "tfma"), model_name="production")
    assert result.model_location == "/registry/x/3"
    models = [(model.name, model.is_baseline) for model in result.config.model_specs]
    assert models == [("candidate", False), ("production", True), ("lead_1", False)]
    kinds = [list(spec.feature_keys) for spec in result.config.slicing_specs]
    assert kinds == [[], ["source"], ["pattern"], ["length"], ["oov"]]


def test_undefined_metrics(tmp_path):
    evaluation = evaluate_numbers(tmp_path, NUMBERS, [0.5, 0.5, 0.5], [0.25, 0.5, 1.0])
    assert math.isnan(float(load(evaluation)[()]["pearson"]["doubleValue"]))
