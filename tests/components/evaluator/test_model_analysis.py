from __future__ import annotations

import math

import pytest
import tensorflow_model_analysis as tfma

from regard.components.common import prediction_table
from tests import fake_tasks
from tests.components.evaluator.evaluating import (
    BAD,
    CONFIG,
    GOOD,
    NUMBERS,
    numbers,
    read,
    run,
    summary,
    table,
)

METRICS = CONFIG["metrics"]
PATTERNS = {"long": {"feature": "source", "matches": "one|last"}}
SLICES = {"by": ["source"], "patterns": PATTERNS, "oov": [0.0, 0.5], "thresholds": {}}
WHOLE = {**CONFIG, "samples": 50, "slices": SLICES, "baseline": "lead_1"}
WORDS = {"source": ["one", "two", "three", "four", "five", "a", "the", "red"]}


@pytest.fixture
def evaluation(folder, tmp_path):
    """The evaluation of a model, production and a baseline, with slices of every kind."""
    table(folder, prediction_table.CANDIDATE, GOOD)
    table(folder, prediction_table.PRODUCTION, BAD)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    return run(tmp_path, WHOLE, WORDS)[0]


def load(evaluation, model=None) -> dict:
    """Return the metrics of each slice by the slice's key."""
    result = tfma.load_eval_result(str(evaluation / "tfma"), model_name=model)
    return result.get_metrics_for_all_slices()


def slices(evaluation) -> dict:
    """Return the scores in our files by TFMA's key of the slice."""
    metrics_by_slice = {}
    for part in read(evaluation / "slices.json")["slices"]:
        metrics_by_slice[((part["kind"], part["name"]),)] = part
    for part in read(evaluation / "by_length.json")["buckets"]:
        low, high = part["low"], part["high"]
        name = f"{low}+" if high is None else f"{low}-{high}"
        metrics_by_slice[(("length", name),)] = part
    return metrics_by_slice


@pytest.mark.parametrize(
    ("model", "ours"),
    [("candidate", None), ("production", "production"), ("lead_1", "baseline")],
)
def test_metrics_of_all_rows_equal_metrics_json(evaluation, model, ours):
    content = read(evaluation / "metrics.json")
    metrics = (content if ours is None else content[ours])["metrics"]
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


@pytest.mark.parametrize(
    ("model", "ours"),
    [("candidate", "candidate"), ("production", "production"), ("lead_1", "baseline")],
)
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
        difference = (
            metrics_by_slice[key]["chrf"]["doubleValue"] - production[key]["chrf"]["doubleValue"]
        )
        assert metrics_by_slice[key]["chrf_diff"] == {"doubleValue": difference}


def test_a_candidate_without_production(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, GOOD)
    summary(folder, 4)
    evaluation, _ = run(tmp_path, CONFIG)
    metrics_by_slice = load(evaluation)
    assert metrics_by_slice == load(evaluation, "candidate")
    value = read(evaluation / "metrics.json")["metrics"]["bleu"]["value"]
    assert metrics_by_slice[()]["bleu"] == {"doubleValue": value}  # no samples, no interval


def test_the_configuration_lists_models_and_slices(evaluation):
    result = tfma.load_eval_result(str(evaluation / "tfma"), model_name="production")
    assert result.model_location == "/registry/x/3"
    models = [(model.name, model.is_baseline) for model in result.config.model_specs]
    assert models == [("candidate", False), ("production", True), ("lead_1", False)]
    kinds = [list(spec.feature_keys) for spec in result.config.slicing_specs]
    assert kinds == [[], ["source"], ["pattern"], ["length"], ["oov"]]


def test_loading_as_a_data_frame(evaluation):
    records = tfma.load_metrics(str(evaluation / "tfma"))
    frame = tfma.dataframe.metrics_as_dataframes(records).double_value
    keys = frame["metric_keys"]
    chosen = frame[(keys["name"] == "chrf") & (keys["model_name"] == "production")]
    chosen = chosen[chosen["slices"]["pattern"] == b"long"]
    (value,) = chosen["metric_values"]["double_value"]
    assert value == slices(evaluation)[(("pattern", "long"),)]["scores"]["production"]["chrf"]


def test_undefined_metrics(folder, tmp_path):
    numbers(folder, prediction_table.CANDIDATE, [0.5, 0.5, 0.5], [0.25, 0.5, 1.0])
    summary(folder, 3, fake_tasks.Matcher().contract())
    evaluation, _ = run(tmp_path, NUMBERS)
    assert math.isnan(float(load(evaluation)[()]["pearson"]["doubleValue"]))
