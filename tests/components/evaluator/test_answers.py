from __future__ import annotations

import subprocess
import sys

import numpy as np

from components import predictions
from components.evaluator.answers import answered
from components.predictions import Row
from models.tasks.features import Feature
from serving.saved_model import Answer
from tests import fake_models
from tests.components.evaluator.evaluating import (
    CONFIG,
    CONTRACT,
    GOOD,
    read,
    run,
    summary,
    table,
)


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


def test_several_references(folder, tmp_path):
    references = [["a red bike", "one red bike"], ["yes"], ["no", "never", "not\nso"]]
    table(folder, predictions.CANDIDATE, ["one red bike", "yes", "not so"], references)
    summary(folder, 3)
    evaluation, _ = run(tmp_path, {**CONFIG, "production": None})
    metrics = read(evaluation / "metrics.json")["metrics"]
    assert metrics["exact_match"]["value"] == 1.0
    assert metrics["bleu"]["signature"].startswith("nrefs:var|")
    files = sorted(path.name for path in evaluation.glob("references*"))
    assert files == ["references-2.txt", "references-3.txt", "references.txt"]
    assert (evaluation / "references.txt").read_text() == "a red bike\nyes\nno\n"
    assert (evaluation / "references-2.txt").read_text() == "one red bike\n\nnever\n"
    assert (evaluation / "references-3.txt").read_text() == "\n\nnot so\n"


def test_columns_are_inputs_extras_and_outputs_but_not_the_weights(folder):
    features = [*fake_models.FEATURES, Feature("subject", "text", role="extra")]
    outputs = {"translation": "b", "score": -1.0, "source_pieces": ["a"], "source_length": 2}
    answer = Answer({**outputs, "alignment": np.ones((1, 1), np.float32)}, CONTRACT)
    row = Row({"source": "a"}, ["b"], {"subject": "letters"})
    predictions.write(folder / "t.parquet", features, [row], [answer])
    assert answered(folder / "t.parquet", CONTRACT).columns == {
        "source": ["a"],
        "subject": ["letters"],
        "source_pieces": [["a"]],
        "source_length": [2],
    }
