"""Tables of predictions, and runs of the Evaluator on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tfx.types import standard_artifacts

from regard.components.common import prediction_table
from regard.components.common.artifacts import Findings, Predictions
from regard.components.common.prediction_table import Row
from regard.components.data.target_overlap import OVERLAP_FILE, overlap_to_json, text_hash
from regard.components.evaluator.executor import EvaluatorExecutor
from regard.serving.saved_model import Prediction
from tests import fake_models, fake_tasks

CONFIG = {
    "metrics": ["bleu", "chrf", "exact_match"],
    "tokenize": "13a",
    "lowercase": False,
    "length_buckets": [3, 6],
    "thresholds": {"exact_match": 0.5},
    "production": {"metric": "chrf", "tolerance": 0.0},
    "checks": {
        name: {"limit": 1.0}
        for name in ("empty", "copies", "repetitions", "length_ratio", "script")
    },
    "samples": 0,
}
REFERENCES = ["one two three four five", "a red bike", "yes", "the\nlast\u2028line of all"]
GOOD = ["one two three four five", "a red bike", "yes", "the last\u2028 line"]
BAD = ["one two", "a bike", "no", ""]
CONTRACT = fake_models.Reverser().contract()
NUMBERS = {**CONFIG, "metrics": ["pearson", "mse"], "thresholds": {}, "production": None}


def table(folder: Path, name: str, hypotheses: list[str], references=REFERENCES) -> None:
    """Write a table of translations; a row has one reference or a list of them."""
    reference_lists = [[one] if isinstance(one, str) else one for one in references]
    rows = [Row({"source": texts[0]}, texts) for texts in reference_lists]
    predictions = [
        Prediction(
            {
                "translation": text,
                "score": -1.0,
                "source_length": len(texts[0].split()) + 1,
                "alignment": np.zeros((0, 0), np.float32),
            },
            CONTRACT,
        )
        for text, texts in zip(hypotheses, reference_lists, strict=True)
    ]
    prediction_table.write(folder / name, fake_models.FEATURES, rows, predictions)


def summary(folder: Path, rows: int, contract=CONTRACT, **more) -> None:
    values = {"rows": rows, "production": None, "production_version": None, "contract": contract}
    prediction_table.write_summary(folder, {**values, "production_error": None, **more})


def run(
    tmp_path: Path, config: dict, words: dict | None = None, overlap: Sequence[str] | None = None
):
    """Run the Evaluator; return the evaluation's folder and the blessing.

    Args:
        tmp_path: contains the folder with the tables.
        config: the section ``evaluation``.
        words: the words of the training split for each feature, if they are own.
        overlap: references of the test split that the training split has too.
    """
    evaluation, blessing = run_evaluator(tmp_path, config, words, overlap)
    return Path(evaluation.uri), blessing


def run_evaluator(
    tmp_path: Path, config: dict, words: dict | None = None, overlap: Sequence[str] | None = None
):
    """Run the Evaluator; return the two artifacts."""
    artifacts = []
    kinds = (Predictions, standard_artifacts.ModelEvaluation, standard_artifacts.ModelBlessing)
    for kind in kinds:
        artifact = kind()
        artifact.uri = str(tmp_path / kind.TYPE_NAME)
        Path(artifact.uri).mkdir(exist_ok=True)
        artifacts.append(artifact)
    inputs = {"predictions": [artifacts[0]]}
    if words is not None or overlap is not None:
        findings = Findings()
        findings.uri = str(tmp_path / "findings")
        profile(Path(findings.uri), words or {})
        if overlap is not None:
            (tmp_path / "findings" / OVERLAP_FILE).write_text(
                overlap_to_json([text_hash(text) for text in overlap])
            )
        inputs["findings"] = [findings]
    EvaluatorExecutor().Do(
        inputs,
        {"evaluation": [artifacts[1]], "blessing": [artifacts[2]]},
        {"config": json.dumps(config), "code": ""},
    )
    return artifacts[1], artifacts[2]


def profile(folder: Path, words: dict, complete: bool = True) -> None:
    """Write the words of each feature as the ExampleValidator does."""
    folder.mkdir(exist_ok=True)
    features = {
        name: {
            "total": len(own),
            "distinct": len(own),
            "once": len(own),
            "words": dict.fromkeys(own, 1),
            "complete": complete,
            "lengths": {"unit": None, "bounds": [], "counts": [0]},
        }
        for name, own in words.items()
    }
    (folder / "profile.json").write_text(json.dumps({"rows": 1, "features": features}))


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def numbers(folder: Path, name: str, hypotheses: list[float], references: list[float]) -> None:
    contract = fake_tasks.Matcher().contract()
    rows = [Row({"first": "a", "second": "b"}, [reference]) for reference in references]
    predictions = [Prediction({"similarity": number}, contract) for number in hypotheses]
    prediction_table.write(folder / name, fake_tasks.SIMILARITY, rows, predictions)
