from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tfx.components.util import model_utils
from tfx.types import standard_artifacts

from components import events, predictions
from components.artifacts import Predictions
from components.errors import UserError
from components.evaluator.executor import EvaluatorExecutor
from components.predictions import Row
from serving.saved_model import Answer

CONFIG = {
    "metrics": ["bleu", "chrf", "exact_match"],
    "tokenize": "13a",
    "lowercase": False,
    "length_buckets": [3, 6],
    "floors": {"exact_match": 0.5},
    "production": {"metric": "chrf", "tolerance": 0.0},
    "batch_size": 64,
}
REFERENCES = ["one two three four five", "a red bike", "yes", "the\nlast\u2028line of all"]
GOOD = ["one two three four five", "a red bike", "yes", "the last\u2028 line"]
BAD = ["one two", "a bike", "no", ""]


def table(folder: Path, name: str, hypotheses: list[str], references=REFERENCES) -> None:
    rows = [Row(reference, reference) for reference in references]
    answers = [
        Answer(text, -1.0, [*reference.split(), "</s>"], text.split(), np.zeros((0, 0)))
        for text, reference in zip(hypotheses, references, strict=True)
    ]
    predictions.write(folder / name, rows, answers)


def summary(folder: Path, rows: int, **more) -> None:
    values = {"rows": rows, "production": None, "production_version": None}
    predictions.write_summary(folder, {**values, "production_error": None, **more})


def run(tmp_path: Path, config: dict):
    made = []
    kinds = (Predictions, standard_artifacts.ModelEvaluation, standard_artifacts.ModelBlessing)
    for kind in kinds:
        artifact = kind()
        artifact.uri = str(tmp_path / kind.TYPE_NAME)
        Path(artifact.uri).mkdir(exist_ok=True)
        made.append(artifact)
    EvaluatorExecutor().Do(
        {"predictions": [made[0]]},
        {"evaluation": [made[1]], "blessing": [made[2]]},
        {"config": json.dumps(config), "code": ""},
    )
    return Path(made[1].uri), made[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / Predictions.TYPE_NAME
    path.mkdir()
    return path


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


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


def test_the_files_give_the_same_bleu_on_the_command_line(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    evaluation, _ = run(tmp_path, CONFIG)
    files = ["references.txt", "-i", "hypotheses.txt"]
    command = [sys.executable, "-m", "sacrebleu", *files, "-m", "bleu", "-b", "-w", "6"]
    done = subprocess.run(command, cwd=evaluation, capture_output=True, check=True, text=True)
    bleu = read(evaluation / "metrics.json")["metrics"]["bleu"]
    assert float(done.stdout) == round(bleu["value"], 6)
    assert (evaluation / "references.txt").read_bytes().count(b"\n") == 4


def test_by_length(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    evaluation, _ = run(tmp_path, CONFIG)
    buckets = read(evaluation / "by_length.json")["buckets"]
    # 5, 3, 1 and 5 pieces before the end of sentence; nothing is longer than 6.
    assert [(b["from"], b["to"], b["rows"]) for b in buckets] == [(0, 3, 2), (4, 6, 2)]
    assert buckets[0]["candidate"]["exact_match"] == 1.0
    assert buckets[1]["candidate"]["exact_match"] == 0.5
    assert "production" not in buckets[0]


def test_floors_bring_their_metric_along(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    config = {**CONFIG, "metrics": ["bleu"], "production": None}
    evaluation, _ = run(tmp_path, config)
    assert list(read(evaluation / "metrics.json")["metrics"]) == ["bleu", "exact_match"]


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


def test_an_unknown_metric_names_the_choices(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    with pytest.raises(UserError, match="did you mean 'bleu'"):
        run(tmp_path, {**CONFIG, "metrics": ["blue"]})
