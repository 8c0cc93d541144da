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
from components.evaluator.answers import answered
from components.evaluator.executor import EvaluatorExecutor
from components.predictions import Row
from models.tasks.features import Feature
from serving.saved_model import Answer
from tests import fake_models, fake_tasks

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


CONTRACT = fake_models.Reverser().contract()


def table(folder: Path, name: str, hypotheses: list[str], references=REFERENCES) -> None:
    """A translation's; a row's references are one text or a list of them."""
    several = [[given] if isinstance(given, str) else given for given in references]
    rows = [Row({"source": texts[0]}, texts) for texts in several]
    answers = [
        Answer(
            {
                "translation": text,
                "score": -1.0,
                "source_length": len(texts[0].split()) + 1,
                "alignment": np.zeros((0, 0), np.float32),
            },
            CONTRACT,
        )
        for text, texts in zip(hypotheses, several, strict=True)
    ]
    predictions.write(folder / name, fake_models.FEATURES, rows, answers)


def summary(folder: Path, rows: int, contract=CONTRACT, **more) -> None:
    values = {"rows": rows, "production": None, "production_version": None, "contract": contract}
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


def test_degenerate_answers_are_counted_shown_and_may_be_refused(folder, tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    table(folder, predictions.CANDIDATE, BAD)
    summary(folder, 4)
    checks = {
        "empty": {"limit": 0.1, "action": "fail"},
        "copies": {"limit": 0.0, "action": "fail"},
        "length_ratio": {"limit": 0.1, "action": "warn", "ratio": 2.0},
    }
    config = {**CONFIG, "floors": {}, "production": None, "checks": checks}
    evaluation, blessing = run(tmp_path, config)
    found = read(evaluation / "checks.json")
    assert {name: entry["rows"] for name, entry in found.items()} == {
        "empty": 1,
        "copies": 0,
        "length_ratio": 1,
    }
    assert found["empty"]["examples"][0]["row"] == 3
    decision = read(Path(blessing.uri) / "blessing.json")
    assert decision["sentence"] == (
        "Not blessed: 25% of the answers are empty, over the limit of 10%."
    )
    warned = [event["text"] for event, _ in events.read(log) if event["kind"] == "warning"]
    assert warned == ["25% of the answers are of a strange length, over the limit of 10%"]


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


def test_a_metric_of_other_answers_names_the_choices(folder, tmp_path):
    table(folder, predictions.CANDIDATE, GOOD)
    summary(folder, 4)
    with pytest.raises(UserError, match="pearson judges answers of the kind number") as caught:
        run(tmp_path, {**CONFIG, "metrics": ["pearson"]})
    assert caught.value.where == "evaluation.metrics"
    assert "choices: bleu, chrf, exact_match" in caught.value.message


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


NUMBERS = {**CONFIG, "metrics": ["pearson", "mse"], "floors": {}, "production": None}


def numbers(folder: Path, name: str, hypotheses: list[float], references: list[float]) -> None:
    contract = fake_tasks.Matcher().contract()
    rows = [Row({"first": "a", "second": "b"}, [reference]) for reference in references]
    answers = [Answer({"similarity": number}, contract) for number in hypotheses]
    predictions.write(folder / name, fake_tasks.SIMILARITY, rows, answers)


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


def test_a_model_that_answers_everything_alike_is_not_blessed(folder, tmp_path):
    numbers(folder, predictions.CANDIDATE, [0.5, 0.5, 0.5], [0.25, 0.5, 1.0])
    summary(folder, 3, fake_tasks.Matcher().contract())
    _, blessing = run(tmp_path, NUMBERS)
    assert not model_utils.is_model_blessed(blessing)
    assert read(Path(blessing.uri) / "blessing.json")["sentence"] == (
        "Not blessed: Pearson is undefined (nrefs:1|undefined:all hypotheses are the same)."
    )


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
