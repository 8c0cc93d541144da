"""The results of a comparison, read from the runs of its pipelines, and its folder."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from regard.components.common import prediction_table
from regard.components.evaluator.results import (
    BaselineResult,
    Evaluation,
    LengthBucket,
    LengthScores,
    MetricResult,
)
from regard.core.files import atomic_write, read_json_object, write_json
from regard.core.yaml_text import to_yaml
from regard.pipeline import progress, run_store
from regard.pipeline.compare.matrix import Member, ModelComparison
from regard.pipeline.config.config import NODES
from regard.pipeline.config.recorded import recorded_config
from regard.pipeline.doctor import machine
from regard.pipeline.progress import Progress
from regard.pipeline.run_summary import training_record
from regard.pipeline.workspace import Workspace

LAST_NODE = "Evaluator"  # a comparison pushes nothing
WAITING = "waiting"
FINISHED = "finished"

# All that a result depends on; the other sections say where things are stored.
_SECTIONS = ["task", "data", "augmentation", "tokenizer", "model", "training", "search"]
_SECTIONS += ["evaluation", "serving"]


class ModelResult(BaseModel):
    """The state of one model, and its figures if it has been evaluated."""

    label: str
    state: str
    recipe: str | None = None  # equal for models that differ only in the seed
    data: str | None = None  # a digest of all rows
    predictions: str | None = None
    pipeline: str | None = None
    log: str | None = None
    error: str | None = None
    run: str | None = None
    parameters: int | None = None
    training_seconds: float | None = None
    epochs: int | None = None
    steps: int | None = None
    stop_reason: str | None = None
    perplexity: float | None = None
    metrics: dict[str, MetricResult] = {}
    baselines: list[BaselineResult] = []
    test_rows: int | None = None
    sentences_per_second: float | None = None
    decode_batch_size: int | None = None
    device: str | None = None
    by_length: list[LengthBucket] = []
    length_unit: str | None = None
    history: list[dict[str, int | float]] = []


class ComparisonResults(BaseModel):
    """The results of all models, and of baselines that need no model.

    Attributes:
        best: the label of the model that is significantly the best, by metric.
    """

    name: str
    best: dict[str, str] = {}
    models: list[ModelResult]
    baselines: list[ModelResult] = []

    def to_json(self) -> dict[str, object]:
        """Return what is known, as JSON values."""
        return self.model_dump(exclude_unset=True)


@dataclasses.dataclass(frozen=True)
class ComparisonFolder:
    """``$REGARD_HOME/compare/<name>/``: configurations, logs, results, table and plots."""

    root: Path

    @classmethod
    def of(cls, workspace: Workspace, name: str) -> ComparisonFolder:
        """Return the folder of the comparison of that name."""
        return cls(workspace.home / "compare" / name)

    def log(self, label: str) -> Path:
        """Return the log of a model's run."""
        return self.root / "logs" / f"{label}.txt"

    def write_config(self, member: Member) -> Path:
        """Write the resolved configuration of a model, and return its path."""
        path = self.root / "configs" / f"{member.label}.yaml"
        atomic_write(path, to_yaml(member.config.recorded()))
        return path

    def write(self, results: ComparisonResults, command: str) -> None:
        """Write results, table and plots, each atomically.

        Args:
            results: the result of `gather`.
            command: the user's command.
        """
        from regard.pipeline.compare import plots, table

        timestamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        facts = {"command": command, "time": timestamp, "cores": machine.cores()}
        write_json(self.root / "results.json", {**results.to_json(), **facts})
        atomic_write(self.root / "table.md", table.markdown(results, command))
        plots.write_plots(results, self.root)


def gather(comparison: ModelComparison, workspace: Workspace) -> ComparisonResults:
    """Collect the results of all models from their pipelines' files."""
    models = [model_result(member, workspace) for member in comparison.members]
    baselines = {
        one.label: ModelResult(label=one.label, state=FINISHED, metrics=one.metrics)
        for model in models
        for one in model.baselines
    }
    from regard.pipeline.compare.best import best_models

    best = best_models(models, comparison.members[0].config.evaluation)
    return ComparisonResults(
        name=comparison.name, best=best, models=models, baselines=list(baselines.values())
    )


def model_result(member: Member, workspace: Workspace) -> ModelResult:
    """Return the state of one model, and its figures if it has been trained and evaluated."""
    pipeline, expected = member.config.name, member.config.digest(*_SECTIONS)
    facts: dict[str, Any] = {"label": member.label, "pipeline": pipeline, "state": WAITING}
    runs = run_store.runs_of(workspace.pipeline(pipeline))
    matching = [
        run
        for run in runs
        if (config := recorded_config(run)) and config.digest(*_SECTIONS) == expected
    ]
    if not matching:
        return ModelResult(**facts)
    states = ((run, progress.read(run.events, NODES)) for run in reversed(matching))
    evaluated = next(((run, s) for run, s in states if s.outputs(LAST_NODE)), None)
    if evaluated is not None:
        training = member.config.training.model_copy(update={"seed": 0})
        recipe = member.config.model_copy(update={"training": training}).digest(*_SECTIONS)
        facts |= _figures(evaluated[1]) | {"run": evaluated[0].id, "recipe": recipe}
    last = matching[-1]
    status = run_store.status(last)
    if status in (run_store.SUCCEEDED, run_store.NOT_BLESSED):
        # `regard run --to` may have ended it earlier.
        status = FINISHED if facts.get("run") == last.id else WAITING
    failure = last.record().get("failure") or {}
    if status == run_store.FAILED and failure.get("error"):
        facts["error"] = ": ".join(filter(None, (failure.get("node"), failure["error"])))
    return ModelResult(**facts | {"state": status, "log": str(last.log)})


def _figures(state: Progress) -> dict[str, object]:
    training = training_record(state)
    predictions = state.output_folder("Predictor", "predictions")
    decoding = read_json_object(predictions / prediction_table.SUMMARY)
    corpus = read_json_object(state.output_folder("CorpusGen", "findings") / "corpus.json")
    folder = state.output_folder(LAST_NODE, "evaluation")
    evaluation, lengths = Evaluation.read(folder), LengthScores.read(folder)
    names = ("parameters", "epochs", "steps", "stop_reason", "history")
    figures = {
        **{name: training.get(name) for name in names},
        "training_seconds": training.get("seconds"),
        "data": corpus.get("fingerprint"),
        "predictions": str(predictions),
        "perplexity": _perplexity(training),
        "sentences_per_second": decoding.get("sentences_per_second"),
        "decode_batch_size": decoding.get("batch_size"),
        "device": decoding.get("device"),
    }
    if evaluation is not None:
        figures |= {"metrics": evaluation.metrics, "baselines": evaluation.baselines}
        figures |= {"test_rows": evaluation.rows}
    if lengths is not None:
        figures |= {"by_length": lengths.buckets, "length_unit": lengths.unit}
    return {name: value for name, value in figures.items() if value is not None}


def _perplexity(training: dict[str, Any]) -> Any:
    """Return the perplexity per token of the exported weights on the eval split.

    None if the model is not a language model.
    """
    if "perplexity" in (average := training.get("average") or {}):
        return average["perplexity"]
    best = (e for e in training.get("history", []) if e["step"] == training.get("best_step"))
    return next((entry.get("perplexity") for entry in best), None)
