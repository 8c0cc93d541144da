from __future__ import annotations

import math

import pytest
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.evaluators import metrics_validator
from tensorflow_model_analysis.metrics import metric_specs
from tensorflow_model_analysis.metrics.metric_types import MetricKey
from tensorflow_model_analysis.slicer import slicer_lib as slicer

from components import predictions
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
SLICES = {"by": ["source"], "patterns": PATTERNS, "oov": [0.0, 0.5], "floors": {}}
WHOLE = {**CONFIG, "samples": 50, "slices": SLICES, "baseline": "lead_1"}
WORDS = {"source": ["one", "two", "three", "four", "five", "a", "the", "red"]}


@pytest.fixture
def evaluation(folder, tmp_path):
    """That of a model beside production and a baseline, with slices of every kind."""
    table(folder, predictions.CANDIDATE, GOOD)
    table(folder, predictions.PRODUCTION, BAD)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    return run(tmp_path, WHOLE, WORDS)[0]


def loaded(evaluation, model=None) -> dict:
    """Slices by their keys, each with its metrics by name."""
    result = tfma.load_eval_result(str(evaluation / "tfma"), model_name=model)
    return result.get_metrics_for_all_slices()


def slices(evaluation) -> dict:
    """What the files of ours hold, by what TFMA calls a slice."""
    found = {}
    for part in read(evaluation / "slices.json")["slices"]:
        found[((part["slice"], part["name"]),)] = part
    for part in read(evaluation / "by_length.json")["buckets"]:
        name = f"{part['from']}+" if part["to"] is None else f"{part['from']}-{part['to']}"
        found[(("length", name),)] = part
    return found


@pytest.mark.parametrize(
    ("model", "ours"),
    [("candidate", None), ("production", "production"), ("lead_1", "baseline")],
)
def test_all_rows_have_the_numbers_of_metrics_json(evaluation, model, ours):
    content = read(evaluation / "metrics.json")
    metrics = (content if ours is None else content[ours])["metrics"]
    found = loaded(evaluation, model)[()]
    assert found["example_count"] == {"doubleValue": 4.0}
    for name in METRICS:
        interval = metrics[name]["interval"]
        assert found[name] == {
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
def test_every_slice_has_the_numbers_of_our_files(evaluation, model, ours):
    found, wanted = loaded(evaluation, model), slices(evaluation)
    assert set(found) == {(), *wanted}
    kinds = {key[0][0] for key in wanted}
    assert kinds == {"source", "pattern", "length", "oov"}
    assert {key[0][1] for key in wanted if key[0][0] == "oov"} == {"0", "0-0.5", "0.5+"}
    for key, part in wanted.items():
        assert found[key]["example_count"] == {"doubleValue": part["rows"]}
        for name in METRICS:
            assert found[key][name] == {"doubleValue": part[ours][name]}


def test_without_a_name_it_is_the_candidate_beside_production(evaluation):
    found, beside = loaded(evaluation), loaded(evaluation, "production")
    assert found == loaded(evaluation, "candidate")
    for key in slices(evaluation):
        difference = found[key]["chrf"]["doubleValue"] - beside[key]["chrf"]["doubleValue"]
        assert found[key]["chrf_diff"] == {"doubleValue": difference}


def test_a_candidate_alone_needs_no_name(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    evaluation, _ = run(tmp_path, CONFIG)
    found = loaded(evaluation)
    assert found == loaded(evaluation, "candidate")
    value = read(evaluation / "metrics.json")["metrics"]["bleu"]["value"]
    assert found[()]["bleu"] == {"doubleValue": value}  # without samples there is no interval


def test_the_configuration_names_models_slices_and_places(evaluation):
    result = tfma.load_eval_result(str(evaluation / "tfma"), model_name="production")
    assert result.model_location == "/registry/x/3"
    models = [(model.name, model.is_baseline) for model in result.config.model_specs]
    assert models == [("candidate", False), ("production", True), ("lead_1", False)]
    kinds = [list(spec.feature_keys) for spec in result.config.slicing_specs]
    assert kinds == [[], ["source"], ["pattern"], ["length"], ["oov"]]
    (spec,) = result.config.metrics_specs
    (floor,) = spec.per_slice_thresholds["exact_match"].thresholds
    assert floor.threshold.value_threshold.lower_bound.value == 0.5
    assert list(floor.slicing_specs) == [tfma.SlicingSpec()]


def test_as_a_data_frame(evaluation):
    records = tfma.load_metrics(str(evaluation / "tfma"))
    frame = tfma.dataframe.metrics_as_dataframes(records).double_value
    keys = frame["metric_keys"]
    chosen = frame[(keys["name"] == "chrf") & (keys["model_name"] == "production")]
    chosen = chosen[chosen["slices"]["pattern"] == b"long"]
    (value,) = chosen["metric_values"]["double_value"]
    assert value == slices(evaluation)[(("pattern", "long"),)]["production"]["chrf"]


def validation(evaluation):
    return tfma.load_validation_result(str(evaluation / "tfma"))


def test_a_blessed_model_is_valid(evaluation):
    found = validation(evaluation)
    assert found.validation_ok
    assert not found.rubber_stamp
    assert not found.metric_validations_per_slice
    (detail,) = found.validation_details.slicing_details
    assert detail.num_matching_slices == 1


FLOORS = {
    "pattern=long": {"exact_match": 0.9},
    "length": {"chrf": 1.0},
    "oov": {"bleu": 90.0},
    "source=nothing": {"bleu": 1.0},
}


def test_failures_stand_in_their_slices(folder, tmp_path):
    table(folder, predictions.CANDIDATE, BAD)
    table(folder, predictions.PRODUCTION, GOOD)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    config = {**WHOLE, "metrics": ["bleu", "exact_match", "chrf"], "samples": 0}
    evaluation, _ = run(tmp_path, {**config, "slices": {**SLICES, "floors": FLOORS}}, WORDS)
    found = validation(evaluation)
    assert not found.validation_ok
    (missing,) = found.missing_slices
    assert dict(missing.feature_values) == {"source": "nothing"}
    failures = {
        slicer.deserialize_slice_key(part.slice_key): {
            failure.metric_key.name: failure for failure in part.failures
        }
        for part in found.metric_validations_per_slice
    }
    assert set(failures[()]) == {"exact_match", "chrf"}  # the floor, and production
    worse = failures[()]["chrf"]
    content = read(evaluation / "metrics.json")
    ours, theirs = (side["metrics"]["chrf"]["value"] for side in (content, content["production"]))
    assert worse.metric_value.double_value.value == ours
    assert worse.metric_threshold.value_threshold.lower_bound.value == theirs
    assert "worse than version 3" in worse.message
    assert set(failures[(("pattern", "long"),)]) == {"exact_match"}
    assert set(failures[(("oov", "0"),)]) == {"bleu"}

    # TFMA's own rules find the same failures of floors, given the specs and the metrics.
    result = tfma.load_eval_result(str(evaluation / "tfma"))
    thresholds = metric_specs.metric_thresholds_from_metrics_specs(
        result.config.metrics_specs, eval_config=result.config
    )
    assert {key.name for key in thresholds} == {"exact_match", "chrf", "bleu"}
    for key, metrics in result.get_metrics_for_all_slices().items():
        values = {
            MetricKey(name, "candidate", example_weighted=None): metrics[name]["doubleValue"]
            for name in METRICS
        }
        theirs = metrics_validator.validate_metrics((key, values), result.config)
        names = {
            failure.metric_key.name
            for part in theirs.metric_validations_per_slice
            for failure in part.failures
            if failure.message == ""
        }
        mine = {name for name, one in failures.get(key, {}).items() if "version" not in one.message}
        assert names == mine, key


def test_lower_is_better_and_what_is_undefined(folder, tmp_path):
    numbers(folder, predictions.CANDIDATE, [0.5, 0.5, 0.5], [0.25, 0.5, 1.0])
    summary(folder, 3, fake_tasks.Matcher().contract())
    evaluation, _ = run(tmp_path, {**NUMBERS, "floors": {"mse": 0.01}})
    found = validation(evaluation)
    failures = {one.metric_key.name: one for one in found.metric_validations_per_slice[0].failures}
    assert failures["mse"].metric_threshold.value_threshold.upper_bound.value == 0.01
    assert not failures["pearson"].HasField("metric_threshold")
    value = loaded(evaluation)[()]["pearson"]["doubleValue"]
    assert math.isnan(float(value))


def test_where_nothing_is_asked_the_model_is_stamped(folder, tmp_path):
    table(folder, predictions.CANDIDATE, BAD)
    summary(folder, 4)
    evaluation, _ = run(tmp_path, {**CONFIG, "floors": {}, "production": None})
    found = validation(evaluation)
    assert found.validation_ok
    assert found.rubber_stamp
