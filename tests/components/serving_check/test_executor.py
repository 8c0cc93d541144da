from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from tfx.components.util import model_utils
from tfx.types import standard_artifacts

from components import predictions
from components.artifacts import Predictions
from components.errors import UserError
from components.predictions import Row
from components.predictor.decode import decode
from components.serving_check import executor
from components.serving_check.executor import ServingCheckExecutor, _rows
from components.serving_check.process import run_check
from serving import check
from tests import fake_models
from tests.fake_models import artifact

TEXTS = ["the cat sat", "on a mat", "", "abc def"]


def run(tmp_path: Path, model: Path, servers: list[str], change=None):
    decoded = decode(model / "Format-Serving", TEXTS, 2).answers
    if change:
        decoded[0] = change(decoded[0])
    answers = artifact(Predictions, tmp_path / "predictions")
    rows = [Row(text, text) for text in TEXTS]
    predictions.write(Path(answers.uri) / predictions.CANDIDATE, rows, decoded)
    predictions.write_summary(answers.uri, {"rows": len(rows), "device": "CPU"})
    blessing = artifact(standard_artifacts.InfraBlessing, tmp_path / "blessing")
    ServingCheckExecutor().Do(
        {"model": [artifact(standard_artifacts.Model, model)], "predictions": [answers]},
        {"blessing": [blessing]},
        {"tf_serving": json.dumps(servers), "rows": 32, "timeout_seconds": 300, "code": ""},
    )
    return blessing


@pytest.fixture(scope="module")
def tokenizing(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("sentencepiece")
    fake_models.save(fake_models.sentencepiece_model(), root / "Format-Serving")
    return root


def test_a_model_with_sentencepiece_inside_is_blessed(tokenizing, tmp_path):
    blessing = run(tmp_path, tokenizing, ["2.14", "2.19", "2.20"])
    assert model_utils.is_infra_validated(blessing)
    folder = Path(blessing.uri)
    assert (folder / "INFRA_BLESSED").exists()
    result = json.loads((folder / "serving_check.json").read_text(encoding="utf-8"))
    assert result["failures"] == []
    assert result["unsupported_ops"] == {"2.14": [], "2.19": [], "2.20": []}
    assert "SentencepieceTokenizeOp" in result["text_ops"]
    # Registered operations of TensorFlow itself are not taken for TensorFlow Text's.
    assert all("Sentencepiece" in name for name in result["text_ops"])
    assert result["rows"] == len(TEXTS) + 2


def test_an_operation_that_a_server_lacks_is_named(tmp_path):
    model = tmp_path / "model"
    fake_models.save(fake_models.whitespace_model(), model / "Format-Serving")
    with pytest.raises(UserError) as caught:
        run(tmp_path, model, ["2.19", "2.6.2"])
    assert "TensorFlow Serving 2.6.2" in caught.value.message
    assert "TFText>WhitespaceTokenizeWithOffsetsV2" in caught.value.message
    # TensorFlow writes it into every SavedModel since 2.11.
    assert "DisableCopyOnRead" in caught.value.message
    assert not (tmp_path / "blessing" / "INFRA_BLESSED").exists()


def test_another_answer_is_a_bug_with_row_and_values(tokenizing, tmp_path, monkeypatch):
    monkeypatch.setattr(executor, "run_check", lambda request, _: check.check(request))

    def change(answer):
        return dataclasses.replace(answer, hypothesis="OTHER", score=-99.0)

    with pytest.raises(RuntimeError, match=r"row 0 \('the cat sat'\)[^\n]*'OTHER' \(-99\.0"):
        run(tmp_path, tokenizing, ["2.20"], change)
    # What was found is kept, but there is no blessing.
    assert [path.name for path in (tmp_path / "blessing").iterdir()] == ["serving_check.json"]


def test_an_unknown_server_is_refused_before_anything_runs(tokenizing, tmp_path):
    with pytest.raises(UserError, match=r"'2\.99' are not known \(choices: 2\.6 to 2\.20\)"):
        run(tmp_path, tokenizing, ["2.99"])


def test_a_process_that_takes_too_long_is_ended(tmp_path):
    with pytest.raises(RuntimeError, match=r"not loaded and checked within 0\.05 s"):
        run_check({"model": str(tmp_path)}, 0.05)


def test_a_process_that_fails_tells_its_last_lines():
    with pytest.raises(RuntimeError, match=r"ended with status 1:\n[^$]*KeyError: 'model'"):
        run_check({}, 300)


def test_rows_are_spread_over_the_lengths(tmp_path):
    texts = ["a" * length for length in (5, 1, 9, 3, 7, 2, 8, 4, 6, 10)]
    model = fake_models.save(fake_models.Reverser(), tmp_path / "model")
    answers = decode(model, texts, 4).answers
    predictions.write(tmp_path / "t.parquet", [Row(text, text) for text in texts], answers)
    chosen = _rows(tmp_path / "t.parquet", 4)
    assert [len(row["source"]) for row in chosen] == [1, 4, 7, 10]
    assert chosen[0]["row"] == 1
    assert len(_rows(tmp_path / "t.parquet", 99)) == 10
    assert len(_rows(tmp_path / "t.parquet", 1)) == 1
