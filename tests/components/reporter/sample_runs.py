"""Small artifacts of runs of several tasks, for tests of the report."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from regard.components.common import prediction_table
from regard.components.common.prediction_table import Row
from regard.components.common.run_record import CACHED, DONE, Node, RunRecord
from regard.components.evaluator.predictions import read_rows
from regard.components.evaluator.results import CANDIDATE, PRODUCTION
from regard.components.evaluator.row_differences import compare_rows
from regard.components.evaluator.scoring import ModelScores
from regard.components.evaluator.slices import Slice
from regard.components.reporter.run_facts import ARTIFACTS, RunFacts
from regard.components.settings.evaluation import EvaluationConfig
from regard.core.features import Feature
from regard.serving.saved_model import Prediction
from tests import fake_models, fake_tasks

HOSTILE = "</script><img src=x onerror=alert(1)> & <b>"
WORDS = ("a dog runs", "two men sit", "the red car", "a big house", "no one here", "it rains")


def text_run(root: Path, rows: int = 20) -> RunFacts:
    """Text to text; some outputs are wrong, and the last source contains HTML."""
    contract = fake_models.Reverser().contract()
    inputs, answers = [], []
    for n in range(rows):
        source = HOSTILE if n == rows - 1 else f"{WORDS[n % len(WORDS)]} {n}"
        target = source.upper()
        answer = target.replace("A ", "AN ") + (" MORE" if n % 4 == 0 else "")
        inputs.append(Row({"source": source}, [target], file="x/test.tsv", line=n + 1))
        tokens = ["▁a", "b", "</s>"]
        weights = np.full((2, 3), 1 / 3, np.float32)
        weights[0] = (0.8, 0.2, 0.0)
        outputs = {
            "translation": answer,
            "score": -float(n),
            "source_pieces": tokens,
            "source_length": 3,
            "target_pieces": ["▁A", "</s>"],
            "alignment": weights,
        }
        answers.append(Prediction(outputs, contract))
    facts = _write_predictions(root, "translation", fake_models.FEATURES, inputs, answers, contract)
    _write_other_artifacts(root, contract, ["bleu", "chrf"], rows)
    return facts


def points_run(root: Path, rows: int = 14) -> RunFacts:
    """Points to positions."""
    contract = fake_tasks.Sorter().contract()
    points = [[0.1, 0.2], [0.9, 0.4], [0.5, 0.8]]
    inputs = [Row({"points": points}, [[0, 2, 1]], {"width": 1.0}) for _ in range(rows)]
    answers = [
        Prediction(
            {
                "order": np.array([0, 2, 1] if n % 3 else [0, 1, 2], np.int32),
                "order_length": 3,
                "score": -0.5,
                "pointing": np.eye(3, dtype=np.float32)[[0, 2, 1]],
            },
            contract,
        )
        for n in range(rows)
    ]
    facts = _write_predictions(root, "pointer", fake_tasks.SORTING, inputs, answers, contract)
    _write_other_artifacts(root, contract, ["exact_match"], rows)
    return facts


def image_run(root: Path, rows: int = 3) -> RunFacts:
    """Images to text; the image of the last row is missing."""
    contract = fake_tasks.Namer().contract()
    (root / "images").mkdir(parents=True)
    inputs, answers = [], []
    for n in range(rows):
        if n < rows - 1:
            (root / "images" / f"{n}.png").write_bytes(fake_tasks.png(40, 60))
        inputs.append(Row({"image": b"x"}, ["a", "b"], paths={"image": f"images/{n}.png"}))
        weights = np.full((2, 3, 4), 1 / 12, np.float32)
        outputs = {"caption": f"c {n}", "score": -1.0, "target_pieces": ["▁c", f"▁{n}"]}
        answers.append(Prediction({**outputs, "alignment": weights}, contract))
    facts = _write_predictions(root, "captioning", fake_tasks.CAPTIONING, inputs, answers, contract)
    _write_other_artifacts(root, contract, ["bleu_1"], rows)
    return facts


def number_run(root: Path, rows: int = 8) -> RunFacts:
    """Two texts to a number, without attention."""
    contract = fake_tasks.Matcher().contract()
    inputs = [Row({"first": "a", "second": f"b{n}"}, [0.5]) for n in range(rows)]
    answers = [Prediction({"similarity": n / rows}, contract) for n in range(rows)]
    facts = _write_predictions(root, "similarity", fake_tasks.SIMILARITY, inputs, answers, contract)
    _write_other_artifacts(root, contract, ["mse"], rows)
    return facts


def with_production(facts: RunFacts, root: Path, outputs: list[Any]) -> RunFacts:
    """Add a model in production with other outputs, and what the Evaluator writes about both."""
    folder = root / "predictions"
    columns = prediction_table.read(folder / prediction_table.CANDIDATE)
    columns["hypothesis"] = outputs
    schema = pq.read_schema(folder / prediction_table.CANDIDATE)
    table = pa.Table.from_pydict(columns, schema=schema)
    pq.write_table(table, folder / prediction_table.PRODUCTION)
    rows = {
        model: read_rows(folder / file, facts.contract)
        for model, file in (
            (CANDIDATE, prediction_table.CANDIDATE),
            (PRODUCTION, prediction_table.PRODUCTION),
        )
    }
    config = EvaluationConfig(metrics=tuple(facts.metrics["metrics"]), samples=0, production=None)
    scores = {model: ModelScores(outputs, config) for model, outputs in rows.items()}
    count = len(outputs)
    slices = [Slice("half", "first", range(count // 2)), Slice("half", "<b>", [count - 1])]
    differences = compare_rows(rows, scores, slices, facts.contract, config)
    assert differences is not None
    differences.write(root / "evaluation")
    return facts


KINDS = {"text": text_run, "points": points_run, "image": image_run, "number": number_run}


def metric(name: str, value: float, scale: float = 100.0, **more: Any) -> dict[str, Any]:
    """A metric as the Evaluator writes it."""
    return {
        "name": name,
        "label": name.upper(),
        "value": value,
        "signature": f"of:{name}",
        "higher_is_better": True,
        "scale": scale,
        "interval": {"low": value - 1, "high": value + 1, "samples": 1000},
        **more,
    }


def put(root: Path, artifact: str, file: str, content: Any) -> None:
    """Write a file of an artifact."""
    (root / artifact).mkdir(parents=True, exist_ok=True)
    (root / artifact / file).write_text(json.dumps(content), encoding="utf-8")


@contextlib.contextmanager
def edit(root: Path, artifact: str, file: str) -> Iterator[Any]:
    """Yield the content of a file of an artifact, and write it back with its changes."""
    content = json.loads((root / artifact / file).read_text(encoding="utf-8"))
    yield content
    put(root, artifact, file, content)


def _write_predictions(
    root: Path,
    task: str,
    features: list[Feature],
    rows: list[Row],
    answers: list[Prediction],
    contract: dict[str, Any],
) -> RunFacts:
    (root / "predictions").mkdir(parents=True, exist_ok=True)
    prediction_table.write(
        root / "predictions" / prediction_table.CANDIDATE, features, rows, answers
    )
    put(root, "predictions", prediction_table.SUMMARY, {"rows": len(rows), "contract": contract})
    config = {
        "task": task,
        "data": {"root": str(root)},
        "model": {"decoder": {"type": "luong"}, "attention": {"score": {"type": "general"}}},
        "training": {"seed": 17, "batch_tokens": "auto"},
    }
    run = RunRecord(
        name="mine",
        data_fingerprint="abcdef",
        id="20261122-101010",
        started=1795342210.0,
        command="regard run mine.yaml",
        stack={"tensorflow": "2.21.0"},
        machine={"cores": 2},
        nodes={
            "Trainer": Node(name="Trainer", state=DONE, seconds=75.0, peak_bytes=2_100_000_000),
            "Evaluator": Node(name="Evaluator", state=CACHED, seconds=0.2),
        },
    )
    return RunFacts(run, {name: root / name for name in ARTIFACTS}, task, config)


def _write_other_artifacts(
    root: Path, contract: dict[str, Any], names: list[str], rows: int
) -> None:
    """The artifacts of the other nodes."""
    scale = 1.0 if names == ["exact_match"] else 100.0
    metrics = {name: metric(name, 40.0 * scale / 100, scale) for name in names}
    old = {name: metric(name, 30.0 * scale / 100, scale) for name in names}
    production = {
        "version": "1",
        "metrics": old,
        "comparison": {"metric": names[0], "p_value": 0.012, "test": "randomization"},
    }
    content = {"rows": rows, "metrics": metrics, "production": production, "baseline": None}
    put(root, "evaluation", "metrics.json", content)
    buckets = [
        {
            "low": low,
            "high": high,
            "rows": rows // 2,
            "scores": {
                "candidate": {names[0]: value},
                "production": {names[0]: value - 5},
            },
            "intervals": {"candidate": interval},
        }
        for low, high, value, interval in (
            (0, 10, 44.0, None),
            (11, None, 31.5, {"low": 28.0, "high": 35.0, "samples": 1000}),
        )
    ]
    put(root, "evaluation", "by_length.json", {"unit": "source tokens", "buckets": buckets})
    parts = [
        {
            "kind": "domain",
            "name": name,
            "rows": rows // 2,
            "scores": {"candidate": {names[0]: 39.0}, "production": {names[0]: 37.5}},
        }
        for name in ("news", None)
    ]
    put(root, "evaluation", "slices.json", {"slices": parts})
    faults = {"label": "empty", "rows": 1, "share": 0.05, "limit": 0.01, "action": "warn"}
    example = {"row": 3, "source": "s <i>", "hypothesis": "", "reference": "r", "description": ""}
    put(root, "evaluation", "checks.json", {"checks": {"empty": {**faults, "examples": [example]}}})
    sentence = "Passed: BLEU 40.0 is not worse than version 1 (30.0)."
    put(root, "blessing", "blessing.json", {"blessed": True, "sentence": sentence, "verdicts": []})
    put(root, "pushed", "pushed.json", {"pushed": True, "version": 2, "path": "/r/mine/2"})
    put(root, "serving", "serving_check.json", {"rows": 32})
    history = [
        {
            "step": 100 * n,
            "epoch": n,
            "seconds": 10.0 * n,
            "learning_rate": 0.001,
            "tokens_per_second": 3000.0,
            "train_loss": 8.0 / n,
            "loss": 9.0 / n,
            "perplexity": 1 + 30.0 / n,
        }
        for n in range(1, 7)
    ]
    training = {
        "parameters": 12_345,
        "vocabulary_sizes": {"source": 268},
        "rows": {
            "train": {"usable": 90, "too_long": 6, "incomplete": 4},
            "eval": {"usable": 8, "too_long": 0, "incomplete": 0},
        },
        "steps": 600,
        "batch_tokens": 2048,
        "epochs": 6,
        "seconds": 65.0,
        "target_tokens": 100_000,
        "stop_reason": "max_epochs: 6",
        "history": history,
        "best_step": 600,
        "average": {},
        "pretrained": {},
        "warm_start": {"model": "mine@1"},
    }
    put(root, "model_run", "training.json", training)
    corpus = {"rows": {"train": 100, "test": rows}, "files": []}
    cut = {"file": "train.tsv", "line": 9, "text": "1 column, expected 2"}
    corpus["problems"] = {"row/skipped": {"count": 2, "examples": [cut]}}
    old = {"name": "6", "version": 2, "rows": {"train": 20}, "replayed": True, "available": 90}
    corpus["spans"] = [old, {"name": "7", "version": None, "rows": {"train": 80}}]
    put(root, "corpus", "corpus.json", corpus)
    check = {"count": 3, "of": 100, "share": 0.03, "limit": 0.01, "action": "warn"}
    place = {"where": "train.tsv:7", "text": "a | b", "same_as": "train.tsv:3"}
    lengths = {"unit": "character", "bounds": [5, 10, 20], "splits": {"train": [0, 60, 40, 0]}}
    drift = {"value": 0.0456, "feature": "source", "limit": 0.03, "action": "fail"}
    drift |= {"exceeded": True, "features": {"source": {"examples": [{"word": "neu"}]}}}
    checks = {
        "rows": {"train": 100},
        "checks": {"duplicates": {**check, "exceeded": True, "examples": [place]}},
        "anomalies": [],
        "lengths": {"source": lengths},
        "drift": {"version": "1", "checks": {"drift_words": drift}},
    }
    put(root, "checks", "checks.json", checks)
