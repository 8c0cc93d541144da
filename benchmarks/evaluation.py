"""What proving a model costs beside decoding: the Evaluator, the report, and opening it.

    python benchmarks/evaluation.py multi30k-en-de

Takes the newest run of a pipeline (or any that `regard report` takes), decodes its test split once
more as the Predictor does, evaluates, makes the report, opens it in Chromium, and lets sacreBLEU's
command line score the lines that the Evaluator left. Prints seconds as JSON. Each step but the
first runs three times in this process, and the median counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
REPEATS = 3


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", help="a run, as `regard report` takes it")
    arguments = parser.parse_args()

    from pipeline import runs
    from pipeline.workspace import Workspace

    run = runs.find(Workspace.from_environment(), arguments.run)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(run, Path(folder)), indent=2))


def measure(run: Any, folder: Path) -> dict[str, Any]:
    """The seconds of each step, and what they are shares of."""
    from pipeline import reporting

    found: dict[str, Any] = {"run": run.full_id}
    predictions = decode(run, folder, found)
    evaluation, bare = evaluate(run, predictions, folder)
    found["evaluator"] = round(bare, 2)
    beside = found["predictor"] - found["asking"]
    found["outside_decoding"] = round((beside + bare) / (found["predictor"] + bare), 3)
    found["report"] = repeated(lambda: reporting.write(run, folder / "report.html"))
    found["report_bytes"] = (folder / "report.html").stat().st_size
    found["opening"] = opening(folder / "report.html", folder)
    found["bleu"], found["bleu_of_sacrebleu"] = both_bleus(evaluation)
    return found


def decode(run: Any, folder: Path, found: dict[str, Any]) -> Path:
    """Answers the test split as the Predictor does."""
    from tfx.types import standard_artifacts

    from components.artifacts import Predictions
    from components.predictor.executor import PredictorExecutor
    from pipeline import progress
    from pipeline.config import restored

    state = progress.read(run.events)
    examples, model = standard_artifacts.Examples(), standard_artifacts.Model()
    examples.uri = state.outputs("CorpusGen")["examples"]
    examples.split_names = json.dumps(["train", "eval", "test"])
    model.uri = state.outputs("Trainer")["model"]
    made = Predictions()
    made.uri = str(folder / "predictions")
    Path(made.uri).mkdir()
    config = restored(run.settings())
    properties = {
        "features": json.dumps([feature.to_json() for feature in config.features]),
        "production": "",
        "production_version": "",
        "batch_size": config.evaluation.batch_size,
    }
    began = time.monotonic()
    inputs = {"examples": [examples], "model": [model]}
    PredictorExecutor().Do(inputs, {"predictions": [made]}, properties)
    told = json.loads(Path(made.uri, "predictions.json").read_text(encoding="utf-8"))
    loading = told["models"]["candidate"]["load_seconds"]
    found["rows"], found["asking"], found["loading"] = told["rows"], told["seconds"], loading
    found["predictor"] = round(time.monotonic() - began - loading, 2)
    return Path(made.uri)


def evaluate(run: Any, predictions: Path, folder: Path) -> tuple[Path, float]:
    """Scores the answers as the Evaluator does; the folder, and the seconds."""
    from tfx.types import standard_artifacts

    from components.artifacts import Predictions
    from components.evaluator.executor import EvaluatorExecutor
    from pipeline.config import restored

    given = Predictions()
    given.uri = str(predictions)
    config = restored(run.settings()).section_json("evaluation")

    def once() -> None:
        outputs = {"evaluation": standard_artifacts.ModelEvaluation()}
        outputs["blessing"] = standard_artifacts.ModelBlessing()
        for name, artifact in outputs.items():
            artifact.uri = str(folder / name)
            Path(artifact.uri).mkdir(exist_ok=True)
        listed = {name: [artifact] for name, artifact in outputs.items()}
        EvaluatorExecutor().Do({"predictions": [given]}, listed, {"config": config})

    return folder / "evaluation", repeated(once)


def opening(page: Path, folder: Path) -> float:
    """Until the page is there with its first look drawn."""
    from tests.browser import Browser

    browser = Browser(folder / "profile")

    def once() -> None:
        browser.open(page.as_uri())
        browser.wait("document.querySelector('.look[open] .pieces, #scores') !== null")

    try:
        return repeated(once)
    finally:
        browser.close()


def both_bleus(evaluation: Path) -> tuple[float | None, float | None]:
    """BLEU as the Evaluator and as sacreBLEU's command line give it; None where none is wanted."""
    metrics = json.loads((evaluation / "metrics.json").read_text(encoding="utf-8"))["metrics"]
    if "bleu" not in metrics:
        return None, None
    tokenize = next(
        part.removeprefix("tok:")
        for part in metrics["bleu"]["signature"].split("|")
        if part.startswith("tok:")
    )
    command = [sys.executable, "-m", "sacrebleu", str(evaluation / "references.txt")]
    command += ["-i", str(evaluation / "hypotheses.txt"), "-tok", tokenize, "-b", "-w", "10"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return round(metrics["bleu"]["value"], 10), float(done.stdout)


def repeated(step: Callable[[], Any]) -> float:
    """The median of the seconds that a step takes."""
    found = []
    for _ in range(REPEATS):
        began = time.monotonic()
        step()
        found.append(time.monotonic() - began)
    return round(statistics.median(found), 3)


if __name__ == "__main__":
    main()
