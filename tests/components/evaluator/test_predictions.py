import json
import subprocess
import sys

import numpy as np
import pytest

from regard.components.common import prediction_table
from regard.components.common.prediction_table import Row
from regard.components.evaluator.predictions import baseline_rows, read_rows, text_files
from regard.core.features import Feature
from regard.core.kinds import TEXT
from regard.models import metrics
from regard.models.metrics import Rows
from regard.serving.saved_model import Prediction
from tests import fake_models
from tests.components.evaluator.evaluating import CONFIG, CONTRACT, evaluate

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
    [AWKWARD, CHINESE, SEVERAL],
    ids=["awkward", "Chinese", "several references"],
)
def test_the_files_give_the_same_scores_with_the_sacrebleu_command(
    tmp_path, tokenize, hypotheses, references
):
    config = {**CONFIG, "tokenize": tokenize, "production": None}
    evaluation = evaluate(tmp_path, config, hypotheses, references=references)
    folder = evaluation.folder
    files = sorted(path.name for path in folder.glob("references*"))
    command = [sys.executable, "-m", "sacrebleu", *files, "-i", "hypotheses.txt"]
    command += ["-m", "bleu", "chrf", "-tok", tokenize, "-f", "json", "-w", "17"]
    process = subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True)
    printed = [entry["score"] for entry in json.loads(process.stdout)]
    metrics = evaluation.read("metrics.json")["metrics"]
    assert printed == [metrics["bleu"]["value"], metrics["chrf"]["value"]]
    for name in ("hypotheses.txt", *files):
        assert (folder / name).read_bytes().count(b"\n") == len(references)


def test_files_of_several_references(tmp_path):
    references = [["a red bike", "one red bike"], ["yes"], ["no", "never", "not\nso"]]
    config = {**CONFIG, "production": None}
    evaluation = evaluate(
        tmp_path, config, ["one red bike", "yes", "not so"], references=references
    )
    metrics = evaluation.read("metrics.json")["metrics"]
    assert metrics["exact_match"]["value"] == 1.0
    assert metrics["bleu"]["signature"].startswith("nrefs:var|")
    files = {path.name: path.read_text() for path in evaluation.folder.glob("references*")}
    assert files == {
        "references.txt": "a red bike\nyes\nno\n",
        "references-2.txt": "one red bike\nyes\nnever\n",
        "references-3.txt": "a red bike\nyes\nnot so\n",
    }


def test_outputs_that_are_not_texts_are_written_as_json():
    files = text_files(Rows([[1, 0], [0, 1, 2]], [[[1, 0]], [[2, 0, 1]]]))
    assert files == {
        "hypotheses.txt": ["[1, 0]", "[0, 1, 2]"],
        "references.txt": ["[1, 0]", "[2, 0, 1]"],
    }


def test_attention_is_read_only_on_request(tmp_path):
    features = [*fake_models.FEATURES, Feature("subject", TEXT, role="extra")]
    outputs = {"translation": "b", "score": -1.0, "source_pieces": ["a"], "source_length": 2}
    prediction = Prediction({**outputs, "alignment": np.ones((1, 1), np.float32)}, CONTRACT)
    row = Row({"source": "a"}, ["b"], {"subject": "letters"}, file="test.tsv")
    prediction_table.write(tmp_path / "t.parquet", features, [row], [prediction])
    assert read_rows(tmp_path / "t.parquet", CONTRACT).columns == {
        "file": ["test.tsv"],
        "source": ["a"],
        "subject": ["letters"],
        "source_length": [2],
    }
    with_attention = read_rows(tmp_path / "t.parquet", CONTRACT, with_attention=True).columns
    assert with_attention["source_pieces"] == [["a"]]
    assert np.shape(with_attention["alignment"][0]) == (1, 1)


def test_a_baseline_drops_the_outputs_of_the_model():
    """Otherwise its perplexity would be that of the model."""
    columns = {"source": ["A b. C."], "subject": ["letters"], "source_length": [4]}
    teacher_forced = {"forced_score": [-2.0], "forced_length": [2]}
    rows = baseline_rows(Rows(["x"], [["y"]], {**columns, **teacher_forced}), CONTRACT, "lead_1")
    assert rows.hypotheses == ["A b."]
    assert rows.columns == {"source": ["A b. C."], "subject": ["letters"]}
    assert not metrics.compute(["perplexity"], rows)[0].is_defined


def test_checks_and_baselines_read_sources_without_their_tags(tmp_path):
    texts = ["<de> a dog", "<fr> a cat", "", "<es> a bird"]
    rows = [Row({"source": text}, ["b"]) for text in texts]
    outputs = {"translation": "b", "score": -1.0, "source_length": 2}
    predictions = [Prediction(outputs, CONTRACT)] * len(rows)
    prediction_table.write(tmp_path / "t.parquet", fake_models.FEATURES, rows, predictions)
    tagged = {**CONTRACT, "tags": ["de", "fr"]}
    result = read_rows(tmp_path / "t.parquet", tagged)
    plain = ["a dog", "a cat", "", "<es> a bird"]
    assert result.columns["source"] == plain
    assert baseline_rows(result, tagged, "copy").hypotheses == plain
    assert read_rows(tmp_path / "t.parquet", CONTRACT).columns["source"] == texts
