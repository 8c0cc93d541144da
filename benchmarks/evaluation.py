"""Measure the cost of the evaluation in addition to decoding: Evaluator, report, opening it.

    python benchmarks/evaluation.py multi30k-en-de

Takes the newest run of a pipeline (or any run that `regard report` accepts), decodes its test split
again as the Predictor does, evaluates, writes the report, opens it in Chromium, and computes BLEU
with sacreBLEU's command line on the files of the Evaluator. Prints seconds as JSON: medians of
three in this process, except for decoding, which runs once.
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
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", help="a run, as for `regard report`")
    arguments = parser.parse_args()

    from regard.pipeline.runs import store
    from regard.pipeline.workspace import Workspace

    run = store.find(Workspace.from_environment(), arguments.run)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(run, Path(folder)), indent=2))


def measure(run: Any, folder: Path) -> dict[str, Any]:
    """Measure the seconds of each step."""
    from regard.pipeline.lineage import run_report

    result: dict[str, Any] = {"run": run.full_id}
    predictions = decode(run, folder, result)
    evaluation, seconds = evaluate(run, predictions, folder)
    result["evaluator"] = round(seconds, 2)
    overhead = result["predictor"] - result["decoding"] + seconds
    result["outside_decoding"] = round(overhead / (result["predictor"] + seconds), 3)
    result["report"] = median_seconds(lambda: run_report.write_report(run, folder / "report.html"))
    result["report_bytes"] = (folder / "report.html").stat().st_size
    result["opening"] = open_page(folder / "report.html", folder)
    result["bleu"], result["bleu_of_sacrebleu"] = compare_bleu(evaluation)
    return result


def decode(run: Any, folder: Path, result: dict[str, Any]) -> Path:
    """Decode the test split as the Predictor does, and return the folder of its output."""
    from tfx.types import standard_artifacts

    from regard.components.common import run_progress
    from regard.components.common.artifact_types import Predictions
    from regard.components.predictor.executor import PredictorExecutor
    from regard.pipeline.config import config_from_values

    state = run_progress.read(run.events)
    examples, model = standard_artifacts.Examples(), standard_artifacts.Model()
    examples.uri = state.outputs("CorpusGen")["examples"]
    examples.split_names = json.dumps(["train", "eval", "test"])
    model.uri = state.outputs("Trainer")["model"]
    output = Predictions()
    output.uri = str(folder / "predictions")
    Path(output.uri).mkdir()
    config = config_from_values(run.settings())
    properties = {
        "split": "test",
        "features": json.dumps([feature.to_json() for feature in config.features]),
        "production": "",
        "production_version": "",
        "batch_size": config.evaluation.batch_size,
    }
    start = time.monotonic()
    inputs = {"examples": [examples], "model": [model]}
    PredictorExecutor().Do(inputs, {"predictions": [output]}, properties)
    summary = json.loads(Path(output.uri, "predictions.json").read_text(encoding="utf-8"))
    candidate = summary["models"]["candidate"]
    loading = candidate["load_seconds"]
    result |= {"rows": summary["rows"], "decoding": candidate["seconds"], "loading": loading}
    result["predictor"] = round(time.monotonic() - start - loading, 2)
    return Path(output.uri)


def evaluate(run: Any, predictions: Path, folder: Path) -> tuple[Path, float]:
    """Evaluate as the Evaluator does; return the folder of its output and the seconds."""
    from tfx.types import standard_artifacts

    from regard.components.common.artifact_types import Predictions
    from regard.components.evaluator.executor import EvaluatorExecutor
    from regard.pipeline.config import config_from_values

    artifact_in = Predictions()
    artifact_in.uri = str(predictions)
    config = config_from_values(run.settings()).section_json("evaluation")

    def once() -> None:
        outputs = {"evaluation": standard_artifacts.ModelEvaluation()}
        outputs["blessing"] = standard_artifacts.ModelBlessing()
        for name, artifact in outputs.items():
            artifact.uri = str(folder / name)
            Path(artifact.uri).mkdir(exist_ok=True)
        listed = {name: [artifact] for name, artifact in outputs.items()}
        EvaluatorExecutor().Do({"predictions": [artifact_in]}, listed, {"config": config})

    return folder / "evaluation", median_seconds(once)


def open_page(page: Path, folder: Path) -> float:
    """Measure the seconds until the page is open with its first attention map."""
    from tests.browser import Browser

    browser = Browser(folder / "profile")

    def once() -> None:
        browser.open(page.as_uri())
        browser.wait("document.querySelector('.attention[open] .tokens, #scores') !== null")

    try:
        return median_seconds(once)
    finally:
        browser.close()


def compare_bleu(evaluation: Path) -> tuple[float | None, float | None]:
    """Compute BLEU as the Evaluator and with sacreBLEU's command line; None without BLEU."""
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
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    return round(metrics["bleu"]["value"], 10), float(process.stdout)


def median_seconds(step: Callable[[], Any]) -> float:
    """Run a step several times, and return the median of its seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.monotonic()
        step()
        times.append(time.monotonic() - start)
    return round(statistics.median(times), 3)


if __name__ == "__main__":
    main()
