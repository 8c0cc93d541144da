from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tfx.components.util import model_utils

from regard.components.common import prediction_table
from regard.components.common.errors import UserError
from regard.components.common.prediction_table import Row
from regard.models.tasks.description import Feature
from regard.serving.saved_model import Prediction
from tests import fake_models, fake_tasks
from tests.components.evaluator.evaluating import (
    BAD,
    CONFIG,
    CONTRACT,
    GOOD,
    NUMBERS,
    numbers,
    read,
    run,
    summary,
    table,
)


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_intervals_and_significance_tests(folder, tmp_path, test):
    texts = [f"this is sentence number {n} of all" for n in range(40)]
    worse = [text if n % 4 else "what is this" for n, text in enumerate(texts)]
    slightly = [text if n else "what is this" for n, text in enumerate(texts)]
    production = {"metric": "chrf", "test": test, "significance": 0.05}
    config = {**CONFIG, "thresholds": {}, "samples": 200, "production": production}
    for hypotheses, blessed in ((worse, False), (slightly, True)):
        table(folder, prediction_table.CANDIDATE, hypotheses, texts)
        table(folder, prediction_table.PRODUCTION, texts, texts)
        summary(folder, 40, production="/registry/x/3", production_version="3")
        evaluation, blessing = run(tmp_path, config)
        metrics = read(evaluation / "metrics.json")
        for name in CONFIG["metrics"]:
            result = metrics["metrics"][name]
            assert result["interval"]["low"] <= result["value"] <= result["interval"]["high"]
            assert result["interval"]["samples"] == 200
        comparison = metrics["production"]["comparison"]
        assert (comparison["metric"], comparison["test"], comparison["samples"]) == (
            "chrf",
            test,
            200,
        )
        decision = read(Path(blessing.uri) / "blessing.json")
        assert decision["blessed"] is blessed
        assert (comparison["p_value"] >= 0.05) is blessed
        assert f"p = {comparison['p_value']:.3f}" in decision["sentence"]


def test_scores_in_slices(folder, tmp_path):
    features = [*fake_models.FEATURES, Feature("domain", "text", role="extra")]
    references = ["one two", "is it?", "three four", "five six", "no"]
    hypotheses = ["one two", "what?", "three four", "five", "no"]
    domains = ["news", "talk", "news", "", "talk"]
    rows = [
        Row({"source": text}, [text], {"domain": domain})
        for text, domain in zip(references, domains, strict=True)
    ]
    predictions = [
        Prediction(
            {
                "translation": text,
                "score": -1.0,
                "source_length": 2,
                "alignment": np.zeros((0, 0), np.float32),
            },
            CONTRACT,
        )
        for text in hypotheses
    ]
    prediction_table.write(folder / prediction_table.CANDIDATE, features, rows, predictions)
    summary(folder, 5)
    slices = {
        "by": ["domain"],
        "patterns": {
            "questions": {"feature": "source", "matches": r"\?$"},
            "numbers": {"feature": "target", "matches": "one|five"},
            "nothing": {"feature": "source", "matches": "zzz"},
        },
    }
    config = {**CONFIG, "metrics": ["exact_match"], "thresholds": {}, "production": None}
    evaluation, _ = run(tmp_path, {**config, "slices": slices})
    scored = [
        (one["kind"], one["name"], one["rows"], one["scores"]["candidate"]["exact_match"])
        for one in read(evaluation / "slices.json")["slices"]
    ]
    assert scored == [
        ("domain", "", 1, 0.0),
        ("domain", "news", 2, 1.0),
        ("domain", "talk", 2, 0.5),
        ("pattern", "questions", 1, 0.0),
        ("pattern", "numbers", 2, 0.5),
    ]


def test_no_samples_means_no_interval_and_no_test(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, BAD)
    table(folder, prediction_table.PRODUCTION, GOOD)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    production = {"metric": "chrf", "test": "bootstrap"}
    evaluation, blessing = run(tmp_path, {**CONFIG, "samples": 0, "production": production})
    metrics = read(evaluation / "metrics.json")
    assert metrics["metrics"]["bleu"]["interval"] is None
    assert metrics["production"]["comparison"]["p_value"] is None
    assert not model_utils.is_model_blessed(blessing)


def test_scores_by_length(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, GOOD)
    summary(folder, 4)
    evaluation, _ = run(tmp_path, CONFIG)
    scored = read(evaluation / "by_length.json")
    assert scored["unit"] == "source tokens"
    buckets = scored["buckets"]
    # 5, 3, 1 and 5 tokens before the end token; no row is longer than 6.
    assert [(b["low"], b["high"], b["rows"]) for b in buckets] == [(0, 3, 2), (4, 6, 2)]
    assert buckets[0]["scores"]["candidate"]["exact_match"] == 1.0
    assert buckets[1]["scores"]["candidate"]["exact_match"] == 0.5
    assert "production" not in buckets[0]["scores"]


def test_a_baseline_is_scored(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, ["x", "b.", "c"], ["A. Z z.", "B b. C.", "c"])
    summary(folder, 3)
    config = {**CONFIG, "metrics": ["exact_match"], "baseline": "lead_1", "production": None}
    evaluation, blessing = run(tmp_path, config)
    metrics = read(evaluation / "metrics.json")
    assert (metrics["baseline"]["name"], metrics["baseline"]["label"]) == ("lead_1", "lead-1")
    # The sources equal the references, of which only the last is a single sentence.
    assert metrics["baseline"]["metrics"]["exact_match"]["value"] == 1 / 3
    buckets = read(evaluation / "by_length.json")["buckets"]
    assert [bucket["scores"]["baseline"] for bucket in buckets] == [{"exact_match": 1 / 3}]
    assert "baseline" not in str(read(Path(blessing.uri) / "blessing.json"))


def test_metrics_of_thresholds_are_computed(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, GOOD)
    summary(folder, 4)
    config = {**CONFIG, "metrics": ["bleu"], "production": None}
    evaluation, _ = run(tmp_path, config)
    assert list(read(evaluation / "metrics.json")["metrics"]) == ["bleu", "exact_match"]


def test_an_unknown_metric_lists_the_choices(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, GOOD)
    summary(folder, 4)
    with pytest.raises(UserError, match="Did you mean bleu"):
        run(tmp_path, {**CONFIG, "metrics": ["blue"]})


def test_a_metric_of_another_output_kind_is_an_error(folder, tmp_path):
    table(folder, prediction_table.CANDIDATE, GOOD)
    summary(folder, 4)
    with pytest.raises(UserError, match="pearson scores outputs of kind number") as caught:
        run(tmp_path, {**CONFIG, "metrics": ["pearson"]})
    assert caught.value.where == "evaluation.metrics"
    assert "choices: bleu, chrf, exact_match" in caught.value.message


def test_scores_of_numbers(folder, tmp_path):
    numbers(folder, prediction_table.CANDIDATE, [0.1, 0.5, 0.75], [0.25, 0.5, 1.0])
    summary(folder, 3, fake_tasks.Matcher().contract())
    evaluation, blessing = run(tmp_path, NUMBERS)
    metrics = read(evaluation / "metrics.json")["metrics"]
    assert metrics["pearson"]["value"] == pytest.approx(np.corrcoef([1, 5, 7.5], [1, 2, 4])[0, 1])
    assert metrics["mse"]["higher_is_better"] is False
    assert model_utils.is_model_blessed(blessing)
    assert (evaluation / "hypotheses.txt").read_text() == "0.1\n0.5\n0.75\n"
    assert (evaluation / "references.txt").read_text() == "0.25\n0.5\n1.0\n"
    assert not (evaluation / "by_length.json").exists()  # the model has no length


def test_scores_of_positions(folder, tmp_path):
    contract = fake_tasks.Sorter().contract()
    orders = [[1, 0], [0, 1, 2], [2, 0, 1]]
    rows = [Row({"points": [[0.0, 0.0]] * len(o)}, [o], {"width": None}) for o in orders]
    predictions = [
        Prediction(
            {"order": np.array(o, np.int32), "order_length": len(o), "score": -1.0}, contract
        )
        for o in ([1, 0], [0, 1, 2], [0, 1, 2])
    ]
    prediction_table.write(
        folder / prediction_table.CANDIDATE, fake_tasks.SORTING, rows, predictions
    )
    summary(folder, 3, contract)
    config = {**CONFIG, "metrics": ["exact_match"], "length_buckets": [2], "production": None}
    evaluation, blessing = run(tmp_path, config)
    assert model_utils.is_model_blessed(blessing)
    assert read(evaluation / "metrics.json")["metrics"]["exact_match"]["value"] == 2 / 3
    scored = read(evaluation / "by_length.json")
    assert scored["unit"] == "points"
    assert [bucket["rows"] for bucket in scored["buckets"]] == [1, 2]
    assert (evaluation / "hypotheses.txt").read_text().splitlines()[0] == "[1, 0]"
