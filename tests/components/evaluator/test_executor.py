from __future__ import annotations

import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from ml_metadata.metadata_store import ListOptions, MetadataStore
from ml_metadata.proto import metadata_store_pb2
from tfx.components.util import model_utils

from regard.components.common import events, prediction_table
from regard.components.common.errors import UserError
from tests import fake_tasks
from tests.components.evaluator.evaluating import (
    BAD,
    CONFIG,
    GOOD,
    NUMBERS,
    REFERENCES,
    numbers,
    read,
    run,
    run_evaluator,
    summary,
    table,
)


def test_a_good_model_is_blessed(folder, tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    table(folder, prediction_table.CANDIDATE, GOOD)
    table(folder, prediction_table.PRODUCTION, BAD)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    evaluation, blessing = run(tmp_path, CONFIG)

    metrics = read(evaluation / "metrics.json")
    assert metrics["rows"] == 4
    assert list(metrics["metrics"]) == ["bleu", "chrf", "exact_match"]
    assert metrics["metrics"]["exact_match"]["value"] == 0.75
    assert metrics["metrics"]["bleu"]["signature"].startswith("nrefs:1|case:mixed")
    assert metrics["production"]["version"] == "3"
    assert metrics["production"]["metrics"]["exact_match"]["value"] == 0.0

    assert model_utils.is_model_blessed(blessing)
    assert (Path(blessing.uri) / "BLESSED").exists()
    decision = read(Path(blessing.uri) / "blessing.json")
    assert decision["blessed"] is True
    assert decision["sentence"].startswith(
        "Passed: exact match 0.750 is above the threshold of 0.500"
    )
    assert "version 3" in decision["sentence"]
    notes = [event for event, _ in events.read(log)]
    assert [(note["kind"], note["node"]) for note in notes] == [("note", "Evaluator")]
    assert notes[0]["text"] == decision["sentence"]


def test_degenerate_outputs_are_reported_and_may_fail(folder, tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    table(folder, prediction_table.CANDIDATE, BAD)
    summary(folder, 4)
    checks = {
        **CONFIG["checks"],
        "empty": {"limit": 0.1, "action": "fail"},
        "copies": {"limit": 0.0, "action": "fail"},
        "length_ratio": {"limit": 0.1, "action": "warn", "ratio": 2.0},
    }
    config = {**CONFIG, "thresholds": {}, "production": None, "checks": checks}
    evaluation, blessing = run(tmp_path, config)
    results = read(evaluation / "checks.json")["checks"]
    assert {name: check["rows"] for name, check in results.items()} == {
        "empty": 1,
        "copies": 0,
        "repetitions": 0,
        "length_ratio": 1,
        "script": 0,
    }
    assert results["empty"]["examples"][0]["row"] == 3
    decision = read(Path(blessing.uri) / "blessing.json")
    assert decision["sentence"] == ("Failed: 25% of the outputs are empty, above the limit of 10%.")
    warnings = [event["text"] for event, _ in events.read(log) if event["kind"] == "warning"]
    assert warnings == [
        "Degenerate outputs: 25% of the outputs are of unusual length, above the limit of 10%"
    ]


def test_a_bad_model_is_not_blessed(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, BAD)
    table(folder, prediction_table.PRODUCTION, GOOD)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    _, blessing = run(tmp_path, CONFIG)
    assert not model_utils.is_model_blessed(blessing)
    assert (Path(blessing.uri) / "NOT_BLESSED").exists()
    assert not (Path(blessing.uri) / "BLESSED").exists()
    decision = read(Path(blessing.uri) / "blessing.json")
    assert [verdict["rule"] for verdict in decision["verdicts"]] == ["thresholds", "production"]
    assert not any(verdict["passed"] for verdict in decision["verdicts"])


def test_an_error_of_production_is_in_the_sentence(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, GOOD)
    summary(folder, 4, production_version="3", production_error="OSError: gone")
    _, blessing = run(tmp_path, CONFIG)
    decision = read(Path(blessing.uri) / "blessing.json")
    assert decision["blessed"]
    assert "version 3 could not be decoded for a comparison (OSError: gone)" in decision["sentence"]


def test_an_empty_test_split_is_an_error(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, [], [])
    summary(folder, 0)
    with pytest.raises(UserError, match="the test split has no rows"):
        run(tmp_path, CONFIG)


def test_constant_outputs_are_not_blessed(folder, tmp_path):
    numbers(folder, prediction_table.CANDIDATE, [0.5, 0.5, 0.5], [0.25, 0.5, 1.0])
    summary(folder, 3, fake_tasks.Matcher().contract())
    _, blessing = run(tmp_path, {**NUMBERS, "slices": {"target_overlap": True}}, overlap=["0.5"])
    assert not model_utils.is_model_blessed(blessing)
    assert read(Path(blessing.uri) / "blessing.json")["sentence"] == (
        "Failed: Pearson is undefined (nrefs:1|undefined:all hypotheses are the same)."
    )


def test_metrics_can_be_queried_in_ml_metadata(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, GOOD)
    summary(folder, 4)
    artifact, _ = run_evaluator(tmp_path, {**CONFIG, "metrics": ["bleu", "chrf"]})
    metrics = read(Path(artifact.uri) / "metrics.json")["metrics"]
    assert list(metrics) == ["bleu", "chrf", "exact_match"]
    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(tmp_path / "m.sqlite")
    store = MetadataStore(config)
    artifact.type_id = store.put_artifact_type(artifact.artifact_type)
    store.put_artifacts([artifact.mlmd_artifact])
    for name, metric in metrics.items():
        value, signature = (f"custom_properties.{kind}_{name}" for kind in ("metric", "signature"))
        query = f"{value}.double_value > {metric['value'] - 0.01:.3f}"
        query += f" AND {signature}.string_value = '{metric['signature']}'"
        (stored,) = store.get_artifacts(ListOptions(filter_query=query))
        value = stored.custom_properties[f"metric_{name}"].double_value
        assert value == pytest.approx(metric["value"], abs=1e-6)  # the query keeps six decimals
        assert stored.custom_properties["rows"].int_value == 4


def test_undefined_metrics_have_no_value_in_ml_metadata(folder, tmp_path):
    numbers(folder, prediction_table.CANDIDATE, [0.5, 0.5, 0.5], [0.25, 0.5, 1.0])
    summary(folder, 3, fake_tasks.Matcher().contract())
    artifact, _ = run_evaluator(tmp_path, NUMBERS)
    assert not artifact.has_custom_property("metric_pearson")
    signature = artifact.get_string_custom_property("signature_pearson")
    assert signature.endswith("all hypotheses are the same")
    assert artifact.get_float_custom_property("metric_mse") > 0


@pytest.mark.parametrize(("tokens", "blessed"), [([6, 4, 2, 6], False), ([5, 5, 2, 6], True)])
def test_perplexities_of_different_vocabularies_are_not_compared(folder, tmp_path, tokens, blessed):
    """Production gives the references higher scores, with as many tokens in total."""
    sides = {
        prediction_table.CANDIDATE: ([-9.0, -9.0, -9.0, -9.0], [6, 4, 2, 6]),
        prediction_table.PRODUCTION: ([-1.0, -1.0, -1.0, -1.0], tokens),
    }
    for name, (scores, lengths) in sides.items():
        table(folder, name, GOOD)
        columns = pq.read_table(folder / name).append_column("forced_score", [scores])
        pq.write_table(columns.append_column("forced_length", [lengths]), folder / name)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    production = {"metric": "perplexity", "test": None, "slices": ["length"]}
    config = {**CONFIG, "metrics": ["perplexity"], "thresholds": {}, "production": production}
    evaluation, blessing = run(tmp_path, config)
    assert model_utils.is_model_blessed(blessing) is blessed
    result = read(evaluation / "metrics.json")["production"]["metrics"]["perplexity"]
    assert math.isnan(result["value"]) is blessed
    if blessed:
        reason = "the new model has another vocabulary"
        assert result["signature"].endswith(f"undefined:{reason}")
        sentence = read(Path(blessing.uri) / "blessing.json")["sentence"]
        assert f"({reason}), so there is no comparison" in sentence


def test_slices_by_unknown_words_need_the_words_of_the_training_split(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, GOOD)
    summary(folder, 4)
    config = {**CONFIG, "slices": {"oov": [0.0, 0.5]}}
    evaluation, _ = run(tmp_path, config)
    assert not (evaluation / "slices.json").exists()
    evaluation, _ = run(tmp_path, config, {"source": ["one", "two", "three", "yes", "five"]})
    scored = read(evaluation / "slices.json")
    assert scored["vocabulary"] == {"words": 5, "is_complete": True}
    slices = scored["slices"]
    assert [(one["kind"], one["name"], one["rows"]) for one in slices] == [
        ("oov", "0", 1),
        ("oov", "0-0.5", 1),
        ("oov", "0.5+", 2),
    ]
    assert [one["scores"]["candidate"]["exact_match"] for one in slices] == [1.0, 1.0, 0.5]


def test_slices_by_overlap_with_the_training_split(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, GOOD)
    summary(folder, 4)
    config = {
        **CONFIG,
        "slices": {
            "target_overlap": True,
            "thresholds": {"target_overlap=no": {"exact_match": 0.9}},
        },
    }
    evaluation, blessing = run(tmp_path, config, overlap=[REFERENCES[0], REFERENCES[3], "other"])
    slices = read(evaluation / "slices.json")["slices"]
    assert [(one["kind"], one["name"], one["rows"]) for one in slices] == [
        ("target_overlap", "no", 2),
        ("target_overlap", "yes", 2),
    ]
    # Only the last output, which has line breaks, is wrong.
    assert [one["scores"]["candidate"]["exact_match"] for one in slices] == [1.0, 0.5]
    assert model_utils.is_model_blessed(blessing)
    stricter = {
        **config,
        "slices": {"target_overlap": True, "thresholds": {"target_overlap": {"exact_match": 0.9}}},
    }
    assert not model_utils.is_model_blessed(run(tmp_path, stricter, overlap=[REFERENCES[3]])[1])


def test_slices_may_fail_a_model(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, GOOD)
    table(folder, prediction_table.PRODUCTION, REFERENCES)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    thresholds = {"length=4-6": {"exact_match": 0.75}, "length": {"bleu": 0.0}}
    production = {"metric": "chrf", "test": None, "slices": ["length"]}
    config = {**CONFIG, "slices": {"thresholds": thresholds}, "production": production}
    evaluation, blessing = run(tmp_path, config)
    assert not model_utils.is_model_blessed(blessing)
    verdicts = read(Path(blessing.uri) / "blessing.json")["verdicts"]
    failed = [(one["rule"], one["slice"], one["rows"]) for one in verdicts if not one["passed"]]
    assert failed == [
        ("thresholds", "length=4-6", 2),
        ("production", None, None),
        ("production", "length=4-6", 2),
    ]
    tests = read(evaluation / "metrics.json")["production"]["comparison"]["slices"]
    assert [(one["kind"], one["name"], one["rows"], one["adjusted_p_value"]) for one in tests] == [
        ("length", "0-3", 2, None),
        ("length", "4-6", 2, None),
    ]
