"""The scores of changed inputs, and the limits of the loss."""

import pytest
from sacrebleu.metrics import CHRF

from regard.components.common import prediction_table
from regard.components.common.prediction_table import Row
from regard.core.errors import UserError
from regard.serving.saved_model import Prediction
from tests import fake_models, fake_tasks
from tests.components.evaluator.evaluating import (
    CANDIDATE,
    CONFIG,
    GOOD,
    NUMBERS,
    REFERENCES,
    evaluate,
    predict,
    predictions_folder,
    run,
)

WORSE = ["one two three", "a bike", "yes", "the last line"]


def write_changed(root, kind, outputs, sources):
    """Write the outputs for changed sources."""
    rows = [
        Row({"source": source}, [reference], file="new.tsv")
        for source, reference in zip(sources, REFERENCES, strict=True)
    ]
    predictions = [predict(text, 3) for text in outputs]
    path = predictions_folder(root) / prediction_table.robustness_table(kind)
    prediction_table.write(path, fake_models.FEATURES, rows, predictions)


def evaluate_changed(tmp_path, **robustness):
    """Evaluate a model that loses by capital letters, and nothing by accents."""
    upper = [text.upper() for text in REFERENCES]
    write_changed(tmp_path, "upper_case", WORSE, [*upper[:3], REFERENCES[3]])
    write_changed(tmp_path, "missing_accents", GOOD, REFERENCES)
    kinds = ["upper_case", "missing_accents"]
    config = CONFIG | {"robustness": {"kinds": kinds, **robustness}}
    return evaluate(tmp_path, config)


def test_scores_and_losses(tmp_path):
    result = evaluate_changed(tmp_path)
    metrics = result.read("metrics.json")
    upper, accents = metrics["robustness"]
    assert (upper["kind"], upper["rows"]) == ("upper_case", 3)
    assert (accents["kind"], accents["rows"]) == ("missing_accents", 0)
    references = [" ".join(text.splitlines()) for text in REFERENCES]
    assert upper["scores"]["chrf"] == pytest.approx(CHRF().corpus_score(WORSE, [references]).score)
    for name, metric in metrics["metrics"].items():
        assert upper["losses"][name] == pytest.approx(metric["value"] - upper["scores"][name])
        assert accents["scores"][name] == metric["value"]
        assert accents["losses"][name] == 0
    assert upper["losses"]["exact_match"] == 0.5
    assert upper["limit"] is None
    assert result.is_blessed
    assert "accents" not in result.decision["sentence"]


def test_a_loss_above_the_limit_fails_the_gate(tmp_path):
    limits = {"upper_case": 0.4, "missing_accents": 0.0}
    result = evaluate_changed(tmp_path, metric="exact_match", max_loss=limits)
    assert not result.is_blessed
    failed, passed = (
        verdict for verdict in result.decision["verdicts"] if verdict["rule"] == "robustness"
    )
    assert (failed["passed"], failed["value"], failed["bound"]) == (False, 0.5, 0.4)
    assert failed["metric"] == "exact_match"
    assert (passed["passed"], passed["value"]) == (True, 0)
    sentence = result.decision["sentence"]
    assert "upper case, 0.5000, is above the limit of 0.4000" in sentence
    assert "evaluation.robustness.max_loss.upper_case" in sentence


def test_a_loss_at_the_limit_passes(tmp_path):
    result = evaluate_changed(tmp_path, metric="exact_match", max_loss={"upper_case": 0.5})
    assert result.is_blessed
    assert "upper case, 0.5000, is within the limit of 0.5000" in result.decision["sentence"]


def evaluate_similarity(tmp_path, outputs, changed, **robustness):
    contract = fake_tasks.Matcher().contract()
    path = predictions_folder(tmp_path)
    tables = {
        CANDIDATE: ("a", outputs),
        prediction_table.robustness_table("spaces"): ("A", changed),
    }
    for table, (text, numbers) in tables.items():
        rows = [Row({"first": text, "second": "b"}, [score]) for score in (1.0, 2.0, 3.0)]
        predictions = [Prediction({"similarity": number}, contract) for number in numbers]
        prediction_table.write(path / table, fake_tasks.SIMILARITY, rows, predictions)
    config = NUMBERS | {"robustness": {"kinds": ["spaces"], **robustness}}
    return run(tmp_path, config, 3, contract=contract)


def test_where_lower_is_better_a_loss_is_a_rise(tmp_path):
    limits = {"metric": "mse", "max_loss": {"spaces": 0.5}}
    result = evaluate_similarity(tmp_path, [1.0, 2.0, 3.0], [1.0, 2.0, 5.0], **limits)
    (spaces,) = result.read("metrics.json")["robustness"]
    assert spaces["rows"] == 3
    assert spaces["losses"]["mse"] == pytest.approx(4 / 3)
    assert not result.is_blessed


def test_an_undefined_score_fails_its_limit(tmp_path):
    limits = {"max_loss": {"spaces": 1.0}}
    result = evaluate_similarity(tmp_path, [1.0, 2.0, 3.0], [2.0, 2.0, 2.0], **limits)
    (spaces,) = result.read("metrics.json")["robustness"]
    assert spaces["scores"]["pearson"] is None
    assert spaces["losses"]["pearson"] is None
    assert not result.is_blessed
    assert "is undefined" in result.decision["sentence"]


def test_predictions_without_changed_inputs(tmp_path):
    with pytest.raises(UserError) as error:
        evaluate(tmp_path, CONFIG | {"robustness": {"kinds": ["spaces"]}})
    assert error.value.where == "evaluation.robustness"
