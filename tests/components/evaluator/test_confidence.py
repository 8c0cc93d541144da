"""The quality of the confidence on the test split."""

import json
import math

import pytest

from regard.components.common import prediction_table
from regard.components.common.prediction_table import Row
from regard.serving.saved_model import Prediction
from tests import fake_models
from tests.components.evaluator.evaluating import CANDIDATE, CONFIG, predictions_folder, run

PLAIN = fake_models.Reverser().contract()


def contract_with(entry):
    signatures = dict(PLAIN["signatures"])
    detail = signatures["align"]
    signatures["align"] = {**detail, "outputs": {**detail["outputs"], "confidence": []}}
    return {**PLAIN, "signatures": signatures, "confidence": entry}


CONTRACT = contract_with({"output": "confidence", "metric": "exact_match", "good": 1.0})


def write(root, confidences, scores, texts, contract=CONTRACT):
    rows = [Row({"source": "a"}, ["yes"]) for _ in texts]
    shared = {"source_length": 2, "target_length": 2}
    predictions = [
        Prediction({"translation": text, "score": score, "confidence": value, **shared}, contract)
        for text, score, value in zip(texts, scores, confidences, strict=True)
    ]
    path = predictions_folder(root) / CANDIDATE
    prediction_table.write(path, fake_models.FEATURES, rows, predictions)
    return run(root, {**CONFIG, "thresholds": {}}, len(rows), contract=contract)


def test_confidence_and_the_plain_score(tmp_path):
    scores = [-0.2, -4.0, -2.0, math.nan]
    result = write(tmp_path, [0.9, 0.7, 0.2, math.nan], scores, ["yes", "yes", "no", ""])
    confidence = result.read("confidence.json")
    assert (confidence["rows"], confidence["share"]) == (3, pytest.approx(2 / 3))
    assert (confidence["auroc"], confidence["score_auroc"]) == (1.0, 0.5)
    assert confidence["ece"] == pytest.approx((0.1 + 0.3 + 0.2) / 3)
    errors = 1 - math.exp(-0.1), 1 - math.exp(-2), math.exp(-1)
    assert confidence["score_ece"] == pytest.approx(sum(errors) / 3)
    assert [entry["rows"] for entry in confidence["bins"]] == [1, 1, 1]


def test_all_outputs_are_good(tmp_path):
    confidence = write(tmp_path, [0.9, 0.8], [-1.0, -1.0], ["yes", "yes"]).read("confidence.json")
    assert (confidence["auroc"], confidence["score_auroc"]) == (None, None)
    assert json.dumps(confidence, allow_nan=False)


@pytest.mark.parametrize("entry", [None, {"output": "confidence"}, "no rows"])
def test_no_result(tmp_path, entry):
    contract, values = contract_with(entry), [0.5]
    if entry == "no rows":
        contract, values = CONTRACT, [math.nan]
    result = write(tmp_path, values, [-1.0], ["yes"], contract)
    assert not (result.folder / "confidence.json").exists()
