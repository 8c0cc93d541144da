from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tfx.components.util import model_utils

from components import predictions
from components.errors import UserError
from components.predictions import Row
from models.tasks.features import Feature
from serving.saved_model import Answer
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
def test_how_sure_it_is(folder, tmp_path, test):
    texts = [f"this is sentence number {n} of all" for n in range(40)]
    worse = [text if n % 4 else "what is this" for n, text in enumerate(texts)]
    hardly = [text if n else "what is this" for n, text in enumerate(texts)]
    production = {"metric": "chrf", "test": test, "significance": 0.05}
    config = {**CONFIG, "floors": {}, "samples": 200, "production": production}
    for hypotheses, blessed in ((worse, False), (hardly, True)):
        table(folder, predictions.CANDIDATE, hypotheses, texts)
        table(folder, predictions.PRODUCTION, texts, texts)
        summary(folder, 40, production="/registry/x/3", production_version="3")
        evaluation, blessing = run(tmp_path, config)
        metrics = read(evaluation / "metrics.json")
        for name in CONFIG["metrics"]:
            found = metrics["metrics"][name]
            assert found["interval"]["low"] <= found["value"] <= found["interval"]["high"]
            assert found["interval"]["samples"] == 200
        against = metrics["production"]["comparison"]
        assert (against["metric"], against["test"], against["samples"]) == ("chrf", test, 200)
        decision = read(Path(blessing.uri) / "blessing.json")
        assert decision["blessed"] is blessed
        assert (against["p_value"] >= 0.05) is blessed
        assert f"p = {against['p_value']:.3f}" in decision["sentence"]


def test_slices(folder, tmp_path):
    features = [*fake_models.FEATURES, Feature("domain", "text", role="extra")]
    references = ["one two", "is it?", "three four", "five six", "no"]
    hypotheses = ["one two", "what?", "three four", "five", "no"]
    domains = ["news", "talk", "news", "", "talk"]
    rows = [
        Row({"source": text}, [text], {"domain": domain})
        for text, domain in zip(references, domains, strict=True)
    ]
    answers = [
        Answer(
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
    predictions.write(folder / predictions.CANDIDATE, features, rows, answers)
    summary(folder, 5)
    slices = {
        "by": ["domain"],
        "patterns": {
            "questions": {"feature": "source", "matches": r"\?$"},
            "numbers": {"feature": "target", "matches": "one|five"},
            "nothing": {"feature": "source", "matches": "zzz"},
        },
    }
    config = {**CONFIG, "metrics": ["exact_match"], "floors": {}, "production": None}
    evaluation, _ = run(tmp_path, {**config, "slices": slices})
    found = [
        (part["slice"], part["name"], part["rows"], part["candidate"]["exact_match"])
        for part in read(evaluation / "slices.json")["slices"]
    ]
    assert found == [
        ("domain", "", 1, 0.0),
        ("domain", "news", 2, 1.0),
        ("domain", "talk", 2, 0.5),
        ("pattern", "questions", 1, 0.0),
        ("pattern", "numbers", 2, 0.5),
    ]


def test_without_samples_there_is_neither_interval_nor_test(folder, tmp_path):
    table(folder, predictions.CANDIDATE, BAD)
    table(folder, predictions.PRODUCTION, GOOD)
    summary(folder, 4, production="/registry/x/3", production_version="3")
    production = {"metric": "chrf", "test": "bootstrap"}
    evaluation, blessing = run(tmp_path, {**CONFIG, "samples": 0, "production": production})
    metrics = read(evaluation / "metrics.json")
    assert metrics["metrics"]["bleu"]["interval"] is None
    assert metrics["production"]["comparison"]["p_value"] is None
    assert not model_utils.is_model_blessed(blessing)


def test_by_length(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    evaluation, _ = run(tmp_path, CONFIG)
    found = read(evaluation / "by_length.json")
    assert found["unit"] == "source pieces"
    buckets = found["buckets"]
    # 5, 3, 1 and 5 pieces before the end of sentence; nothing is longer than 6.
    assert [(b["from"], b["to"], b["rows"]) for b in buckets] == [(0, 3, 2), (4, 6, 2)]
    assert buckets[0]["candidate"]["exact_match"] == 1.0
    assert buckets[1]["candidate"]["exact_match"] == 0.5
    assert "production" not in buckets[0]


def test_a_baseline_is_measured_beside_the_model(folder, tmp_path):
    table(folder, predictions.CANDIDATE, ["x", "b.", "c"], ["A. Z z.", "B b. C.", "c"])
    summary(folder, 3)
    config = {**CONFIG, "metrics": ["exact_match"], "baseline": "lead_1", "production": None}
    evaluation, blessing = run(tmp_path, config)
    metrics = read(evaluation / "metrics.json")
    assert (metrics["baseline"]["name"], metrics["baseline"]["label"]) == ("lead_1", "lead-1")
    # The sources are the references here: only the last is a single sentence.
    assert metrics["baseline"]["metrics"]["exact_match"]["value"] == 1 / 3
    buckets = read(evaluation / "by_length.json")["buckets"]
    assert [bucket["baseline"] for bucket in buckets] == [{"exact_match": 1 / 3}]
    assert "baseline" not in str(read(Path(blessing.uri) / "blessing.json"))


def test_floors_bring_their_metric_along(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    config = {**CONFIG, "metrics": ["bleu"], "production": None}
    evaluation, _ = run(tmp_path, config)
    assert list(read(evaluation / "metrics.json")["metrics"]) == ["bleu", "exact_match"]


def test_an_unknown_metric_names_the_choices(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    with pytest.raises(UserError, match="did you mean 'bleu'"):
        run(tmp_path, {**CONFIG, "metrics": ["blue"]})


def test_a_metric_of_other_answers_names_the_choices(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    with pytest.raises(UserError, match="pearson judges answers of the kind number") as caught:
        run(tmp_path, {**CONFIG, "metrics": ["pearson"]})
    assert caught.value.where == "evaluation.metrics"
    assert "choices: bleu, chrf, exact_match" in caught.value.message


def test_numbers(folder, tmp_path):
    numbers(folder, predictions.CANDIDATE, [0.1, 0.5, 0.75], [0.25, 0.5, 1.0])
    summary(folder, 3, fake_tasks.Matcher().contract())
    evaluation, blessing = run(tmp_path, NUMBERS)
    metrics = read(evaluation / "metrics.json")["metrics"]
    assert metrics["pearson"]["value"] == pytest.approx(np.corrcoef([1, 5, 7.5], [1, 2, 4])[0, 1])
    assert metrics["mse"]["higher_is_better"] is False
    assert model_utils.is_model_blessed(blessing)
    assert (evaluation / "hypotheses.txt").read_text() == "0.1\n0.5\n0.75\n"
    assert (evaluation / "references.txt").read_text() == "0.25\n0.5\n1.0\n"
    assert not (evaluation / "by_length.json").exists()  # the model knows no length


def test_positions(folder, tmp_path):
    contract = fake_tasks.Sorter().contract()
    orders = [[1, 0], [0, 1, 2], [2, 0, 1]]
    rows = [Row({"points": [[0.0, 0.0]] * len(o)}, [o], {"width": None}) for o in orders]
    answers = [
        Answer({"order": np.array(o, np.int32), "order_length": len(o), "score": -1.0}, contract)
        for o in ([1, 0], [0, 1, 2], [0, 1, 2])
    ]
    predictions.write(folder / predictions.CANDIDATE, fake_tasks.SORTING, rows, answers)
    summary(folder, 3, contract)
    config = {**CONFIG, "metrics": ["exact_match"], "length_buckets": [2], "production": None}
    evaluation, blessing = run(tmp_path, config)
    assert model_utils.is_model_blessed(blessing)
    assert read(evaluation / "metrics.json")["metrics"]["exact_match"]["value"] == 2 / 3
    found = read(evaluation / "by_length.json")
    assert found["unit"] == "points"
    assert [bucket["rows"] for bucket in found["buckets"]] == [1, 2]
    assert (evaluation / "hypotheses.txt").read_text().splitlines()[0] == "[1, 0]"
