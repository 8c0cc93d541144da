import numpy as np
import pytest

from regard.core.errors import UserError
from tests.components.evaluator.evaluating import (
    BAD,
    CONFIG,
    GOOD,
    NUMBERS,
    evaluate,
    evaluate_numbers,
)


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_intervals_and_significance_tests(tmp_path, test):
    texts = [f"this is sentence number {n} of all" for n in range(40)]
    worse = [text if n % 4 else "what is this" for n, text in enumerate(texts)]
    slightly = [text if n else "what is this" for n, text in enumerate(texts)]
    production = {"metric": "chrf", "test": test, "significance": 0.05}
    config = {**CONFIG, "thresholds": {}, "samples": 200, "production": production}
    for hypotheses, blessed in ((worse, False), (slightly, True)):
        result = evaluate(tmp_path, config, hypotheses, texts, texts)
        metrics = result.read("metrics.json")
        for metric in metrics["metrics"].values():
            interval = metric["interval"]
            assert interval["low"] <= metric["value"] <= interval["high"]
            assert interval["samples"] == 200
        comparison = metrics["production"]["comparison"]
        expected = {"metric": "chrf", "test": test, "samples": 200}
        assert {name: comparison[name] for name in expected} == expected
        assert result.is_blessed is blessed
        assert (comparison["p_value"] >= 0.05) is blessed
        assert f"p = {comparison['p_value']:.3f}" in result.decision["sentence"]


def test_no_samples_means_no_interval_and_no_test(tmp_path):
    production = {"metric": "chrf", "test": "bootstrap"}
    result = evaluate(tmp_path, {**CONFIG, "samples": 0, "production": production}, BAD, GOOD)
    metrics = result.read("metrics.json")
    assert metrics["metrics"]["bleu"]["interval"] is None
    assert metrics["production"]["comparison"]["p_value"] is None
    assert not result.is_blessed


def test_scores_by_length(tmp_path):
    scored = evaluate(tmp_path, {**CONFIG, "samples": 50}).read("by_length.json")
    assert scored["unit"] == "source tokens"
    buckets = scored["buckets"]
    # 5, 3, 1 and 5 tokens before the end token; no row is longer than 6.
    assert [(b["low"], b["high"], b["rows"]) for b in buckets] == [(0, 3, 2), (4, 6, 2)]
    assert [b["scores"]["candidate"]["exact_match"] for b in buckets] == [1.0, 0.5]
    assert "production" not in buckets[0]["scores"]
    interval = buckets[1]["intervals"]["candidate"]  # of BLEU
    assert interval["low"] < buckets[1]["scores"]["candidate"]["bleu"] <= interval["high"]


def test_a_baseline_is_scored(tmp_path):
    config = {**CONFIG, "metrics": ["exact_match"], "baselines": ["lead_1"], "production": None}
    result = evaluate(tmp_path, config, ["x", "b.", "c"], references=["A. Z z.", "B b. C.", "c"])
    (baseline,) = result.read("metrics.json")["baselines"]
    assert (baseline["name"], baseline["label"]) == ("lead_1", "lead-1")
    # The sources equal the references, of which only the last is a single sentence.
    assert baseline["metrics"]["exact_match"]["value"] == 1 / 3
    buckets = result.read("by_length.json")["buckets"]
    assert [bucket["scores"]["lead_1"] for bucket in buckets] == [{"exact_match": 1 / 3}]
    assert not result.is_blessed
    assert result.decision["sentence"] == (
        "Failed: exact match 0.3333 is below the threshold of 0.5000 and not better than the "
        "baseline"
        " (lead-1: 0.3333). Rules: evaluation.thresholds.exact_match, evaluation.baselines."
    )


def rules(result):
    return [verdict["rule"] for verdict in result.decision["verdicts"]]


def test_the_first_version_must_be_significantly_better_than_baselines(tmp_path):
    references = [f"row {n} is the number {n * n} of all" for n in range(40)]
    half = [text if n % 2 else "the row of all" for n, text in enumerate(references)]
    config = {**CONFIG, "metrics": ["bleu"], "thresholds": {}, "samples": 200}
    config |= {"baselines": ["most_frequent", "chance"], "production": {"metric": "bleu"}}
    result = evaluate(tmp_path, config, half, references=references)
    assert result.is_blessed
    assert rules(result) == ["baselines", "baselines"]
    baselines = result.read("metrics.json")["baselines"]
    assert [(baseline["name"], baseline["metric"]) for baseline in baselines] == [
        ("most_frequent", "bleu"),
        ("chance", "bleu"),
    ]
    assert all(baseline["p_value"] < 0.05 for baseline in baselines)
    # Better in two rows of 40 is not significant.
    few = [text if n < 2 else references[0] for n, text in enumerate(references)]
    result = evaluate(tmp_path, {**config, "baselines": ["most_frequent"]}, few, None, references)
    assert not result.is_blessed
    words = "is not significantly better than the baseline (most frequent reference: "
    assert words in result.decision["sentence"]
    # A later version is compared with production only.
    result = evaluate(tmp_path, config, few, few, references)
    assert result.is_blessed
    assert "baselines" not in rules(result)
    baselines = result.read("metrics.json")["baselines"]
    assert [baseline["p_value"] for baseline in baselines] == [None, None]


def test_metrics_of_attention_are_not_those_of_a_baseline(tmp_path):
    config = {**CONFIG, "metrics": ["perplexity", "bleu"], "baselines": ["copy"]}
    config |= {"thresholds": {}, "production": {"metric": "perplexity"}}
    result = evaluate(tmp_path, config)
    (baseline,) = result.read("metrics.json")["baselines"]
    assert baseline["metric"] == "bleu"


def test_numbers_are_compared_with_chance(tmp_path):
    references = [n / 40 for n in range(40)]
    config = {**NUMBERS, "baselines": ["chance"], "samples": 200}
    result = evaluate_numbers(tmp_path, config, [n / 50 for n in range(40)], references)
    assert result.is_blessed
    assert result.decision["sentence"].startswith(
        "Passed: Pearson 1.0000 is significantly better than the baseline (chance: "
    )
    config["metrics"] = ["mse"]  # lower is better
    result = evaluate_numbers(tmp_path, config, [1.0] * 40, references)
    assert "MSE" in result.decision["sentence"]
    assert "is not better than the baseline (chance: " in result.decision["sentence"]


def test_metrics_of_thresholds_are_computed(tmp_path):
    result = evaluate(tmp_path, {**CONFIG, "metrics": ["bleu"], "production": None})
    assert list(result.read("metrics.json")["metrics"]) == ["bleu", "exact_match"]


@pytest.mark.parametrize(
    ("metric", "messages"),
    [
        ("blue", ["Did you mean bleu"]),
        ("pearson", ["pearson scores outputs of kind number", "choices: bleu, chrf, exact_match"]),
    ],
)
def test_a_metric_that_does_not_fit_is_an_error(tmp_path, metric, messages):
    with pytest.raises(UserError) as caught:
        evaluate(tmp_path, {**CONFIG, "metrics": [metric]})
    assert caught.value.where == "evaluation"
    assert all(message in caught.value.message for message in messages)


def test_scores_of_numbers(tmp_path):
    result = evaluate_numbers(tmp_path, NUMBERS, [0.1, 0.5, 0.75], [0.25, 0.5, 1.0])
    metrics = result.read("metrics.json")["metrics"]
    assert metrics["pearson"]["value"] == pytest.approx(np.corrcoef([1, 5, 7.5], [1, 2, 4])[0, 1])
    assert metrics["mse"]["higher_is_better"] is False
    assert result.is_blessed
    assert (result.folder / "hypotheses.txt").read_text() == "0.1\n0.5\n0.75\n"
    assert (result.folder / "references.txt").read_text() == "0.25\n0.5\n1.0\n"
    assert not (result.folder / "by_length.json").exists()  # the model has no length
