from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from components import predictions
from components.evaluator.answers import answered, baseline
from components.predictions import Row
from models import metrics
from models.metrics import Rows
from models.tasks.features import Feature
from serving.saved_model import Answer
from tests import fake_models
from tests.components.evaluator.evaluating import (
    CONFIG,
    CONTRACT,
    GOOD,
    REFERENCES,
    read,
    run,
    summary,
    table,
)

PLAIN = ("13a", GOOD, REFERENCES)
AWKWARD = (
    "13a",
    [
        "one two\r\nthree four five six",
        " a red  bike \u3000",
        "",
        "x\u2028y\x85z\x0bw\x1c",
        "\ufeffa b c d e",
    ],
    [
        "one\ntwo three\rfour five six\n",
        "a red bike\t",
        "nothing\xa0",
        "x y z w\t\tv ",
        "\ufeffa b c d f \n",
    ],
)
CHINESE = (
    "zh",
    ["我们 是学生。　", "", "你好吗\n我很好 OK"],
    ["我们是学生。", "他　们", "你好吗？我很好\rOK "],
)
SEVERAL = (
    "13a",
    ["a", "yes it is\na red bike", "", "one two three four"],
    [
        ["a b c d", "a b c"],
        ["yes it is", "yes\n it is a bike", "a red bike "],
        ["x"],
        ["one two", ""],
    ],
)


@pytest.mark.parametrize(
    ("tokenize", "hypotheses", "references"),
    [PLAIN, AWKWARD, CHINESE, SEVERAL],
    ids=["plain", "awkward", "Chinese", "several references"],
)
def test_the_files_give_the_same_bleu_on_the_command_line(
    folder, tmp_path, tokenize, hypotheses, references
):
    table(folder, predictions.CANDIDATE, hypotheses, references)
    summary(folder, len(references))
    evaluation, _ = run(tmp_path, {**CONFIG, "tokenize": tokenize, "production": None})
    files = sorted(path.name for path in evaluation.glob("references*"))
    command = [sys.executable, "-m", "sacrebleu", *files, "-i", "hypotheses.txt"]
    command += ["-m", "bleu", "chrf", "-tok", tokenize, "-f", "json", "-w", "17"]
    done = subprocess.run(command, cwd=evaluation, capture_output=True, check=True, text=True)
    printed = [found["score"] for found in json.loads(done.stdout)]
    metrics = read(evaluation / "metrics.json")["metrics"]
    assert printed == [metrics["bleu"]["value"], metrics["chrf"]["value"]]
    for name in ("hypotheses.txt", *files):
        assert (evaluation / name).read_bytes().count(b"\n") == len(references)


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
    assert (evaluation / "references-2.txt").read_text() == "one red bike\nyes\nnever\n"
    assert (evaluation / "references-3.txt").read_text() == "a red bike\nyes\nnot so\n"


def test_columns_are_inputs_extras_and_outputs_but_not_what_is_drawn(folder):
    features = [*fake_models.FEATURES, Feature("subject", "text", role="extra")]
    outputs = {"translation": "b", "score": -1.0, "source_pieces": ["a"], "source_length": 2}
    answer = Answer({**outputs, "alignment": np.ones((1, 1), np.float32)}, CONTRACT)
    row = Row({"source": "a"}, ["b"], {"subject": "letters"})
    predictions.write(folder / "t.parquet", features, [row], [answer])
    assert answered(folder / "t.parquet", CONTRACT).columns == {
        "source": ["a"],
        "subject": ["letters"],
        "source_length": [2],
    }
    drawn = answered(folder / "t.parquet", CONTRACT, looks=True).columns
    assert drawn["source_pieces"] == [["a"]]
    assert np.shape(drawn["alignment"][0]) == (1, 1)


def test_a_baseline_has_nothing_of_what_the_model_told():
    """Its perplexity would be the model's own."""
    columns = {"source": ["A b. C."], "subject": ["letters"], "source_length": [4]}
    forced = {"forced_score": [-2.0], "forced_length": [2]}
    beside = baseline(Rows(["x"], [["y"]], {**columns, **forced}), CONTRACT, "lead_1")
    assert beside.hypotheses == ["A b."]
    assert beside.columns == {"source": ["A b. C."], "subject": ["letters"]}
    assert not metrics.compute(["perplexity"], beside)[0].defined
