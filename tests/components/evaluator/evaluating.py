"""Tables of predictions, and evaluations of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tfx.components.util import model_utils
from tfx.types import standard_artifacts
from tfx.types.artifact import Artifact

from regard.components.common import prediction_table
from regard.components.common.artifact_types import Findings, Predictions
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
        name: {"limit": 1.0, "action": "warn"}
        for name in ("empty", "copies", "repetitions", "length_ratio", "script")
    },
    "samples": 0,
    "baselines": [],
}
REFERENCES = ["one two three four five", "a red bike", "yes", "the\nlast\u2028line of all"]
GOOD = ["one two three four five", "a red bike", "yes", "the last\u2028 line"]
BAD = ["one two", "a bike", "no", ""]
CONTRACT = fake_models.Reverser().contract()
NUMBERS = {**CONFIG, "metrics": ["pearson", "mse"], "thresholds": {}, "production": None}
CANDIDATE, PRODUCTION = prediction_table.CANDIDATE, prediction_table.PRODUCTION


class Result(NamedTuple):
    """The artifacts of an evaluation."""

    evaluation: Artifact
    blessing: Artifact

    @property
    def folder(self) -> Path:
        return Path(self.evaluation.uri)

    @property
    def is_blessed(self) -> bool:
        return model_utils.is_model_blessed(self.blessing)

    @property
    def decision(self) -> dict:
        return json.loads(Path(self.blessing.uri, "blessing.json").read_text(encoding="utf-8"))

    def read(self, name: str) -> dict:
        """Return the content of a file of the evaluation."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))


def evaluate(
    root: Path,
    config: dict,
    candidate: list[str] = GOOD,
    production: list[str] | None = None,
    references: Sequence = REFERENCES,
    **options,
) -> Result:
    """Evaluate translations, and those of version 3 if there is a model in production.

    Args:
        root: the folder of all artifacts.
        config: the section ``evaluation``.
        candidate: the outputs.
        production: the outputs of the model in production.
        references: of each row, one reference or a list of them.
        options: see `run`.
    """
    write_table(root, CANDIDATE, candidate, references)
    if production is not None:
        write_table(root, PRODUCTION, production, references)
        options |= {"production": "/registry/x/3", "production_version": "3"}
    return run(root, config, len(candidate), **options)


def evaluate_numbers(
    root: Path, config: dict, outputs: list[float], references: list[float], **options
) -> Result:
    """Evaluate the numbers that a model outputs for pairs of texts."""
    contract = fake_tasks.Matcher().contract()
    rows = [Row({"first": "a", "second": "b"}, [reference]) for reference in references]
    predictions = [Prediction({"similarity": number}, contract) for number in outputs]
    path = predictions_folder(root) / CANDIDATE
    prediction_table.write(path, fake_tasks.SIMILARITY, rows, predictions)
    return run(root, config, len(rows), contract=contract, **options)


def predictions_folder(root: Path) -> Path:
    """Return the folder of the tables."""
    folder = root / Predictions.TYPE_NAME
    folder.mkdir(exist_ok=True)
    return folder


def predict(text: str, length: int) -> Prediction:
    """Return a translation of a source of some tokens."""
    attention = np.zeros((0, 0), np.float32)
    outputs = {"translation": text, "score": -1.0, "source_length": length}
    return Prediction({**outputs, "alignment": attention}, CONTRACT)


def write_table(root: Path, name: str, hypotheses: list[str], references=REFERENCES) -> None:
    """Write a table of translations; a row has one reference or a list of them.

    All rows but the last are from ``new.tsv``, the last one is from ``old.tsv``.
    """
    reference_lists = [[one] if isinstance(one, str) else one for one in references]
    files = ["new.tsv" for _ in reference_lists[1:]] + ["old.tsv"]
    pairs = zip(reference_lists, files, strict=False)  # there may be no row
    rows = [Row({"source": texts[0]}, texts, file=file) for texts, file in pairs]
    predictions = [
        predict(text, len(texts[0].split()) + 1)
        for text, texts in zip(hypotheses, reference_lists, strict=True)
    ]
    prediction_table.write(predictions_folder(root) / name, fake_models.FEATURES, rows, predictions)


def run(
    root: Path,
    config: dict,
    rows: int,
    words: dict | None = None,
    overlap: Sequence[str] | None = None,
    contract=CONTRACT,
    **summary,
) -> Result:
    """Run the Evaluator on tables.

    Args:
        root: contains the folder with the tables.
        config: the section ``evaluation``.
        rows: the number of rows.
        words: the words of the training split for each feature, if they are known.
        overlap: references of the test split that the training split has too.
        contract: of the model.
        summary: further values of the Predictor's summary.
    """
    content = {"rows": rows, "production": None, "contract": contract, **summary}
    prediction_table.write_summary(predictions_folder(root), content)
    kinds = (Predictions, standard_artifacts.ModelEvaluation, standard_artifacts.ModelBlessing)
    predictions, evaluation, blessing = (kind() for kind in kinds)
    for artifact in (predictions, evaluation, blessing):
        artifact.uri = str(root / artifact.type_name)
        Path(artifact.uri).mkdir(exist_ok=True)
    inputs = {"predictions": [predictions]}
    if words is not None or overlap is not None:
        findings = Findings()
        findings.uri = str(root / "findings")
        profile(Path(findings.uri), words or {})
        if overlap is not None:
            text = overlap_to_json([text_hash(text) for text in overlap])
            (root / "findings" / OVERLAP_FILE).write_text(text)
        inputs["findings"] = [findings]
    outputs = {"evaluation": [evaluation], "blessing": [blessing]}
    properties = {"config": json.dumps(config), "code": ""}
    EvaluatorExecutor().Do(inputs, outputs, properties)
    return Result(evaluation, blessing)


def profile(folder: Path, words: dict) -> None:
    """Write the words of each feature as the ExampleValidator does."""
    folder.mkdir(exist_ok=True)
    features = {
        name: {
            "total": len(own),
            "distinct": len(own),
            "once": len(own),
            "words": dict.fromkeys(own, 1),
            "complete": True,
            "lengths": {"unit": None, "bounds": [], "counts": [0]},
        }
        for name, own in words.items()
    }
    (folder / "profile.json").write_text(json.dumps({"rows": 1, "features": features}))
