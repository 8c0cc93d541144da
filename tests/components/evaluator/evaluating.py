"""Tables of predictions, and the Evaluator run on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tfx.types import standard_artifacts

from components import predictions
from components.artifacts import Findings, Predictions
from components.evaluator.executor import EvaluatorExecutor
from components.predictions import Row
from components.seen import FILE, key, to_json
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
NUMBERS = {**CONFIG, "metrics": ["pearson", "mse"], "floors": {}, "production": None}


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


def run(tmp_path: Path, config: dict, words: dict | None = None, seen: Sequence[str] | None = None):
    """The evaluation's artifact's folder and the blessing.

    Args:
        tmp_path: holds the folder with the tables.
        config: the section ``evaluation``.
        words: of each feature the words of the train split, if they are known.
        seen: texts of the test split that the train split has too.
    """
    evaluation, blessing = evaluated(tmp_path, config, words, seen)
    return Path(evaluation.uri), blessing


def evaluated(
    tmp_path: Path, config: dict, words: dict | None = None, seen: Sequence[str] | None = None
):
    """The two artifacts."""
    made = []
    kinds = (Predictions, standard_artifacts.ModelEvaluation, standard_artifacts.ModelBlessing)
    for kind in kinds:
        artifact = kind()
        artifact.uri = str(tmp_path / kind.TYPE_NAME)
        Path(artifact.uri).mkdir(exist_ok=True)
        made.append(artifact)
    inputs = {"predictions": [made[0]]}
    if words is not None or seen is not None:
        findings = Findings()
        findings.uri = str(tmp_path / "findings")
        profile(Path(findings.uri), words or {})
        if seen is not None:
            (tmp_path / "findings" / FILE).write_text(to_json([key(text) for text in seen]))
        inputs["findings"] = [findings]
    EvaluatorExecutor().Do(
        inputs,
        {"evaluation": [made[1]], "blessing": [made[2]]},
        {"config": json.dumps(config), "code": ""},
    )
    return made[1], made[2]


def profile(folder: Path, words: dict, complete: bool = True) -> None:
    """What the ExampleValidator tells of the words of each feature."""
    folder.mkdir(exist_ok=True)
    features = {
        name: {
            "total": len(known),
            "distinct": len(known),
            "once": len(known),
            "words": dict.fromkeys(known, 1),
            "complete": complete,
            "lengths": {"bounds": [], "counts": [0]},
        }
        for name, known in words.items()
    }
    (folder / "profile.json").write_text(json.dumps({"rows": 1, "features": features}))


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def numbers(folder: Path, name: str, hypotheses: list[float], references: list[float]) -> None:
    contract = fake_tasks.Matcher().contract()
    rows = [Row({"first": "a", "second": "b"}, [reference]) for reference in references]
    answers = [Answer({"similarity": number}, contract) for number in hypotheses]
    predictions.write(folder / name, fake_tasks.SIMILARITY, rows, answers)
