from __future__ import annotations

import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from ml_metadata.metadata_store import ListOptions, MetadataStore
from ml_metadata.proto import metadata_store_pb2
from tfx.components.util import model_utils

from components import events, predictions
from components.errors import UserError
from tests import fake_tasks
from tests.components.evaluator.evaluating import (
    BAD,
    CONFIG,
    GOOD,
    NUMBERS,
    REFERENCES,
    evaluated,
    numbers,
    read,
    run,
    summary,
    table,
)


def test_a_good_model_is_blessed(folder, tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    table(folder, predictions.CANDIDATE, GOOD)
    table(folder, predictions.PRODUCTION, BAD)
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
    assert decision["sentence"].startswith("Blessed: exact match 0.750 is over the floor of 0.500")
    assert "version 3" in decision["sentence"]
    notes = [event for event, _ in events.read(log)]
    assert [(note["kind"], note["node"]) for note in notes] == [("note", "Evaluator")]
    assert notes[0]["text"] == decision["sentence"]


def test_degenerate_answers_are_counted_shown_and_may_be_refused(folder, tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    table(folder, predictions.CANDIDATE, BAD)
    summary(folder, 4)
    checks = {
        "empty": {"limit": 0.1, "action": "fail"},
        "copies": {"limit": 0.0, "action": "fail"},
        "length_ratio": {"limit": 0.1, "action": "warn", "ratio": 2.0},
    }
    config = {**CONFIG, "floors": {}, "production": None, "checks": checks}
    evaluation, blessing = run(tmp_path, config)
    found = read(evaluation / "checks.json")
    assert {name: entry["rows"] for name, entry in found.items()} == {
        "empty": 1,
        "copies": 0,
        "length_ratio": 1,
    }
    assert found["empty"]["examples"][0]["row"] == 3
    decision = read(Path(blessing.uri) / "blessing.json")
    assert decision["sentence"] == (
        "Not blessed: 25% of the answers are empty, over the limit of 10%."
    )
    warned = [event["text"] for event, _ in events.read(log) if event["kind"] == "warning"]
    assert warned == ["25% of the answers are of a strange length, over the limit of 10%"]


def test_a_bad_model_is_not_blessed_and_is_no_error(folder, tmp_path):
    table(folder, predictions.CANDIDATE, BAD)
    table(folder, predictions.PRODUCTION, GOOD)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    _, blessing = run(tmp_path, CONFIG)
    assert not model_utils.is_model_blessed(blessing)
    assert (Path(blessing.uri) / "NOT_BLESSED").exists()
    assert not (Path(blessing.uri) / "BLESSED").exists()
    decision = read(Path(blessing.uri) / "blessing.json")
    assert [reason["rule"] for reason in decision["reasons"]] == ["floors", "production"]
    assert not any(reason["passed"] for reason in decision["reasons"])


def test_without_production_the_failure_is_in_the_sentence(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4, production_version="3", production_error="OSError: gone")
    _, blessing = run(tmp_path, CONFIG)
    decision = read(Path(blessing.uri) / "blessing.json")
    assert decision["blessed"]
    assert "version 3 could not be decoded for a comparison (OSError: gone)" in decision["sentence"]


def test_no_rows_are_refused(folder, tmp_path):
    table(folder, predictions.CANDIDATE, [], [])
    summary(folder, 0)
    with pytest.raises(UserError, match="the test split has no rows"):
        run(tmp_path, CONFIG)


def test_a_model_that_answers_everything_alike_is_not_blessed(folder, tmp_path):
    numbers(folder, predictions.CANDIDATE, [0.5, 0.5, 0.5], [0.25, 0.5, 1.0])
    summary(folder, 3, fake_tasks.Matcher().contract())
    _, blessing = run(tmp_path, {**NUMBERS, "slices": {"seen": True}}, seen=["0.5"])
    assert not model_utils.is_model_blessed(blessing)
    assert read(Path(blessing.uri) / "blessing.json")["sentence"] == (
        "Not blessed: Pearson is undefined (nrefs:1|undefined:all hypotheses are the same)."
    )


def test_ml_metadata_knows_the_metrics_and_their_signatures(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    artifact, _ = evaluated(tmp_path, {**CONFIG, "metrics": ["bleu", "chrf"]})
    metrics = read(Path(artifact.uri) / "metrics.json")["metrics"]
    assert list(metrics) == ["bleu", "chrf", "exact_match"]
    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(tmp_path / "m.sqlite")
    store = MetadataStore(config)
    artifact.type_id = store.put_artifact_type(artifact.artifact_type)
    store.put_artifacts([artifact.mlmd_artifact])
    for name, metric in metrics.items():
        value, signature = (f"custom_properties.{kind}_{name}" for kind in ("metric", "signature"))
        asked = f"{value}.double_value > {metric['value'] - 0.01:.3f}"
        asked += f" AND {signature}.string_value = '{metric['signature']}'"
        (found,) = store.get_artifacts(ListOptions(filter_query=asked))
        stored = found.custom_properties[f"metric_{name}"].double_value
        assert stored == pytest.approx(metric["value"], abs=1e-6)  # it keeps six decimals
        assert found.custom_properties["rows"].int_value == 4


def test_what_is_undefined_has_no_value_in_ml_metadata(folder, tmp_path):
    numbers(folder, predictions.CANDIDATE, [0.5, 0.5, 0.5], [0.25, 0.5, 1.0])
    summary(folder, 3, fake_tasks.Matcher().contract())
    artifact, _ = evaluated(tmp_path, NUMBERS)
    assert not artifact.has_custom_property("metric_pearson")
    signature = artifact.get_string_custom_property("signature_pearson")
    assert signature.endswith("all hypotheses are the same")
    assert artifact.get_float_custom_property("metric_mse") > 0


@pytest.mark.parametrize(("pieces", "blessed"), [([6, 4, 2, 6], False), ([5, 5, 2, 6], True)])
def test_perplexities_are_compared_of_the_same_pieces_alone(folder, tmp_path, pieces, blessed):
    """Production finds the references more probable, in as many pieces altogether."""
    sides = {
        predictions.CANDIDATE: ([-9.0, -9.0, -9.0, -9.0], [6, 4, 2, 6]),
        predictions.PRODUCTION: ([-1.0, -1.0, -1.0, -1.0], pieces),
    }
    for name, (scores, lengths) in sides.items():
        table(folder, name, GOOD)
        told = pq.read_table(folder / name).append_column("forced_score", [scores])
        pq.write_table(told.append_column("forced_length", [lengths]), folder / name)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    against = {"metric": "perplexity", "test": None, "slices": ["length"]}
    config = {**CONFIG, "metrics": ["perplexity"], "floors": {}, "production": against}
    evaluation, blessing = run(tmp_path, config)
    assert model_utils.is_model_blessed(blessing) is blessed
    found = read(evaluation / "metrics.json")["production"]["metrics"]["perplexity"]
    assert math.isnan(found["value"]) is blessed
    if blessed:
        why = "its pieces are not those of the new model"
        assert found["signature"].endswith(f"undefined:{why}")
        sentence = read(Path(blessing.uri) / "blessing.json")["sentence"]
        assert f"({why}), so there is no comparison" in sentence


def test_slices_by_new_words_need_the_words_of_the_train_split(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    config = {**CONFIG, "slices": {"oov": [0.0, 0.5]}}
    evaluation, _ = run(tmp_path, config)
    assert not (evaluation / "slices.json").exists()
    evaluation, _ = run(tmp_path, config, {"source": ["one", "two", "three", "yes", "five"]})
    found = read(evaluation / "slices.json")
    assert found["words"] == {"count": 5, "all": True}
    parts = found["slices"]
    assert [(one["slice"], one["name"], one["rows"]) for one in parts] == [
        ("oov", "0", 1),
        ("oov", "0-0.5", 1),
        ("oov", "0.5+", 2),
    ]
    assert [one["candidate"]["exact_match"] for one in parts] == [1.0, 1.0, 0.5]


def test_rows_whose_reference_is_in_the_train_split_are_scored_apart(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    config = {**CONFIG, "slices": {"seen": True, "floors": {"seen=no": {"exact_match": 0.9}}}}
    evaluation, blessing = run(tmp_path, config, seen=[REFERENCES[0], REFERENCES[3], "other"])
    parts = read(evaluation / "slices.json")["slices"]
    assert [(one["slice"], one["name"], one["rows"]) for one in parts] == [
        ("seen", "no", 2),
        ("seen", "yes", 2),
    ]
    # Of the good answers only the last, which has line breaks, is wrong.
    assert [one["candidate"]["exact_match"] for one in parts] == [1.0, 0.5]
    assert model_utils.is_model_blessed(blessing)
    stricter = {**config, "slices": {"seen": True, "floors": {"seen": {"exact_match": 0.9}}}}
    assert not model_utils.is_model_blessed(run(tmp_path, stricter, seen=[REFERENCES[3]])[1])


def test_slices_may_keep_a_model_back(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    table(folder, predictions.PRODUCTION, REFERENCES)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    floors = {"length=4-6": {"exact_match": 0.75}, "length": {"bleu": 0.0}}
    production = {"metric": "chrf", "test": None, "slices": ["length"]}
    config = {**CONFIG, "slices": {"floors": floors}, "production": production}
    evaluation, blessing = run(tmp_path, config)
    assert not model_utils.is_model_blessed(blessing)
    reasons = read(Path(blessing.uri) / "blessing.json")["reasons"]
    against = [(one["rule"], one["slice"], one["rows"]) for one in reasons if not one["passed"]]
    assert against == [
        ("floors", "length=4-6", 2),
        ("production", None, None),
        ("production", "length=4-6", 2),
    ]
    found = read(evaluation / "metrics.json")["production"]["comparison"]["slices"]
    assert [(one["slice"], one["name"], one["rows"], one["adjusted"]) for one in found] == [
        ("length", "0-3", 2, None),
        ("length", "4-6", 2, None),
    ]
