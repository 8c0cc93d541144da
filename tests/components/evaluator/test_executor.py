import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from ml_metadata.metadata_store import ListOptions, MetadataStore
from ml_metadata.proto import metadata_store_pb2

from regard.core import events
from regard.core.errors import UserError
from tests.components.evaluator.evaluating import (
    BAD,
    CANDIDATE,
    CONFIG,
    GOOD,
    NUMBERS,
    PRODUCTION,
    REFERENCES,
    evaluate,
    evaluate_numbers,
    predictions_folder,
    run,
    write_table,
)


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(path))
    return path


def test_a_good_model_is_blessed(tmp_path, log):
    result = evaluate(tmp_path, CONFIG, GOOD, BAD)
    metrics = result.read("metrics.json")
    assert metrics["rows"] == 4
    assert list(metrics["metrics"]) == ["bleu", "chrf", "exact_match"]
    assert metrics["metrics"]["exact_match"]["value"] == 0.75
    assert metrics["metrics"]["bleu"]["signature"].startswith("nrefs:1|case:mixed")
    assert metrics["production"]["version"] == "3"
    assert metrics["production"]["metrics"]["exact_match"]["value"] == 0.0

    assert result.is_blessed
    assert Path(result.blessing.uri, "BLESSED").exists()
    assert result.decision["blessed"] is True
    sentence = result.decision["sentence"]
    assert sentence.startswith("Passed: exact match 0.7500 is above the threshold of 0.5000")
    assert "version 3" in sentence
    ((note, _),) = events.read(log)
    assert (note["kind"], note["node"], note["text"]) == ("result", "Evaluator", sentence)


@pytest.mark.parametrize(("tokenize", "is_warned"), [("13a", True), ("zh", False)])
def test_words_without_spaces_need_another_tokenization(tmp_path, log, tokenize, is_warned):
    texts = ["我不累。", "他是我的兄弟。", "OK", "汤姆在哪儿？"]
    evaluate(tmp_path, CONFIG | {"tokenize": tokenize}, texts, references=texts)
    warnings = [event["text"] for event, _ in events.read(log) if event["kind"] == "warning"]
    assert [text.startswith("evaluation.tokenize: 13a") for text in warnings] == [True] * is_warned


def test_degenerate_outputs_are_reported_and_may_fail(tmp_path, log):
    checks = {
        **CONFIG["checks"],
        "empty": {"limit": 0.1, "action": "fail"},
        "copies": {"limit": 0.0, "action": "fail"},
        "length_ratio": {"limit": 0.1, "action": "warn", "ratio": 2.0},
    }
    config = {**CONFIG, "thresholds": {"exact_match": 0.0}, "production": None, "checks": checks}
    result = evaluate(tmp_path, config, BAD)
    checks = result.read("checks.json")["checks"]
    counts = {"empty": 1, "copies": 0, "repetitions": 0, "length_ratio": 1, "script": 0}
    assert {name: check["rows"] for name, check in checks.items()} == counts
    assert checks["empty"]["examples"][0]["row"] == 3
    assert result.decision["sentence"] == (
        "Failed: 25% of the outputs are empty, above the limit of 10%."
        " Rule: evaluation.checks.empty. Passed: exact match 0.0000 equals the threshold of 0.0000."
    )
    warnings = [event["text"] for event, _ in events.read(log) if event["kind"] == "warning"]
    assert warnings == [
        "Degenerate outputs: 25% of the outputs are of unusual length, above the limit of 10%"
    ]


def test_a_bad_model_is_not_blessed(tmp_path):
    result = evaluate(tmp_path, CONFIG, BAD, GOOD)
    assert not result.is_blessed
    assert Path(result.blessing.uri, "NOT_BLESSED").exists()
    assert not Path(result.blessing.uri, "BLESSED").exists()
    verdicts = [(verdict["rule"], verdict["passed"]) for verdict in result.decision["verdicts"]]
    assert verdicts == [("thresholds", False), ("production", False)]


def test_an_error_of_production_is_in_the_sentence(tmp_path):
    failure = {"production_version": "3", "production_error": "OSError: gone"}
    decision = evaluate(tmp_path, CONFIG, **failure).decision
    assert decision["blessed"]
    assert "version 3 could not be decoded for a comparison (OSError: gone)" in decision["sentence"]


def test_an_empty_test_split_is_an_error(tmp_path):
    with pytest.raises(UserError, match="The test split has no rows"):
        evaluate(tmp_path, CONFIG, [], references=[])


def test_constant_outputs_are_not_blessed(tmp_path):
    """Undefined metrics have no value in ML Metadata either."""
    result = evaluate_numbers(tmp_path, NUMBERS, [0.5, 0.5, 0.5], [0.25, 0.5, 1.0])
    assert not result.is_blessed
    assert result.decision["sentence"] == (
        "Failed: Pearson is undefined (nrefs:1|undefined:all hypotheses are the same)."
    )
    assert not result.evaluation.has_custom_property("metric_pearson")
    signature = result.evaluation.get_string_custom_property("signature_pearson")
    assert signature.endswith("all hypotheses are the same")
    assert result.evaluation.get_float_custom_property("metric_mse") > 0


def test_metrics_can_be_queried_in_ml_metadata(tmp_path):
    result = evaluate(tmp_path, {**CONFIG, "metrics": ["bleu", "chrf"]})
    metrics, artifact = result.read("metrics.json")["metrics"], result.evaluation
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


@pytest.mark.parametrize(("tokens", "blessed"), [([6, 4, 2, 6], False), ([5, 5, 2, 6], True)])
def test_perplexities_of_different_vocabularies_are_not_compared(tmp_path, tokens, blessed):
    """Production gives the references higher scores, with as many tokens in total."""
    sides = {CANDIDATE: ([-9.0] * 4, [6, 4, 2, 6]), PRODUCTION: ([-1.0] * 4, tokens)}
    for name, (scores, lengths) in sides.items():
        write_table(tmp_path, name, GOOD)
        path = predictions_folder(tmp_path) / name
        columns = pq.read_table(path).append_column("forced_score", [scores])
        pq.write_table(columns.append_column("forced_length", [lengths]), path)
    production = {"metric": "perplexity", "test": None, "slices": ["length"]}
    config = {**CONFIG, "metrics": ["perplexity"], "thresholds": {}, "production": production}
    result = run(tmp_path, config, 4, production="/registry/x/3", production_version="3")
    assert result.is_blessed is blessed
    metric = result.read("metrics.json")["production"]["metrics"]["perplexity"]
    assert math.isnan(metric["value"]) is blessed
    if blessed:
        reason = "the new model has another vocabulary"
        assert metric["signature"].endswith(f"undefined:{reason}")
        assert f"({reason}), so there is no comparison" in result.decision["sentence"]


def scored_slices(result):
    """Return kind, name, rows and exact match of each slice."""
    return [
        (part["kind"], part["name"], part["rows"], part["scores"]["candidate"]["exact_match"])
        for part in result.read("slices.json")["slices"]
    ]


def failed_verdicts(result):
    """Return rule, slice and rows of each verdict that failed."""
    return [
        (verdict["rule"], verdict["slice"], verdict["rows"])
        for verdict in result.decision["verdicts"]
        if not verdict["passed"]
    ]


def test_slices_by_unknown_words_need_the_words_of_the_training_split(tmp_path):
    config = {**CONFIG, "slices": {"oov": [0.0, 0.5]}}
    assert not (evaluate(tmp_path, config).folder / "slices.json").exists()
    words = {"source": ["one", "two", "three", "yes", "five"]}
    result = evaluate(tmp_path, config, words=words)
    expected = [("oov", "0", 1, 1.0), ("oov", "0-0.5", 1, 1.0), ("oov", "0.5+", 2, 0.5)]
    assert scored_slices(result) == expected


def test_slices_by_overlap_with_the_training_split(tmp_path):
    def config(name):
        thresholds = {name: {"exact_match": 0.9}}
        return {**CONFIG, "slices": {"target_overlap": True, "thresholds": thresholds}}

    overlap = [REFERENCES[0], REFERENCES[3], "other"]
    result = evaluate(tmp_path, config("target_overlap=no"), overlap=overlap)
    # Only the last output, which has line breaks, is wrong.
    expected = [("target_overlap", "no", 2, 1.0), ("target_overlap", "yes", 2, 0.5)]
    assert scored_slices(result) == expected
    assert result.is_blessed
    assert not evaluate(tmp_path, config("target_overlap"), overlap=[REFERENCES[3]]).is_blessed
    # Outputs that are not texts have no such slices.
    numbers = {**NUMBERS, "slices": {"target_overlap": True}}
    evaluate_numbers(tmp_path, numbers, [0.5, 0.6], [0.25, 0.5], overlap=["0.5"])


def test_a_model_that_forgets_the_test_file_of_old_data_fails(tmp_path):
    """It is better than production on all rows, but not on those of the old file."""
    thresholds = {"file=old.tsv": {"chrf": 60.0}, "file=new.tsv": {"chrf": 60.0}}
    production = {"metric": "chrf", "test": None, "slices": ["file=old.tsv"]}
    config = {**CONFIG, "slices": {"by": ["file"], "thresholds": thresholds}}
    config["production"] = production
    forgetful = [*REFERENCES[:3], "nothing"]
    result = evaluate(tmp_path, config, forgetful, ["two", "bike", "no", REFERENCES[3]])
    assert not result.is_blessed
    verdicts = result.decision["verdicts"]
    failed = [
        (verdict["rule"], verdict["slice"], verdict["rows"])
        for verdict in verdicts
        if not verdict["passed"]
    ]
    assert failed == [("thresholds", "file=old.tsv", 1), ("production", "file=old.tsv", 1)]
    assert evaluate(tmp_path, config, list(REFERENCES), forgetful).is_blessed


def test_slices_may_fail_a_model(tmp_path):
    thresholds = {"length=4-6": {"exact_match": 0.75}, "length": {"bleu": 0.0}}
    production = {"metric": "chrf", "test": None, "slices": ["length"]}
    config = {**CONFIG, "slices": {"thresholds": thresholds}, "production": production}
    result = evaluate(tmp_path, config, GOOD, REFERENCES)
    assert not result.is_blessed
    verdicts = result.decision["verdicts"]
    failed = [
        (verdict["rule"], verdict["slice"], verdict["rows"])
        for verdict in verdicts
        if not verdict["passed"]
    ]
    assert failed == [
        ("thresholds", "length=4-6", 2),
        ("production", None, None),
        ("production", "length=4-6", 2),
    ]
    tests = result.read("metrics.json")["production"]["comparison"]["slices"]
    assert [(test["name"], test["rows"], test["adjusted_p_value"]) for test in tests] == [
        ("0-3", 2, None),
        ("4-6", 2, None),
    ]
