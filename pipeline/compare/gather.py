"""Collect the results of a comparison from the runs of its pipelines."""

from __future__ import annotations

import itertools
from typing import Any

from regard.components.common import prediction_table
from regard.components.common.run_progress import Progress
from regard.components.common.run_record import FAILED, NOT_BLESSED, SUCCEEDED
from regard.components.evaluator.results import Evaluation, LengthScores
from regard.core.files import read_json_object
from regard.pipeline.compare.best import best_models
from regard.pipeline.compare.matrix import Member, ModelComparison
from regard.pipeline.compare.results import FINISHED, WAITING, ComparisonResults, ModelResult
from regard.pipeline.config.config import NODES
from regard.pipeline.config.recorded import recorded_config
from regard.pipeline.runs import store
from regard.pipeline.runs.summary import training_record
from regard.pipeline.workspace import Workspace

LAST_NODE = "Evaluator"  # a comparison pushes nothing

# All that a result depends on; the other sections say where things are stored.
_SECTIONS = ["task", "data", "augmentation", "tokenizer", "model", "training", "search"]
_SECTIONS += ["evaluation", "serving"]


def gather(comparison: ModelComparison, workspace: Workspace) -> ComparisonResults:
    """Collect the results of all models from their pipelines' files."""
    models = [model_result(member, workspace) for member in comparison.members]
    baselines: dict[str, ModelResult] = {}
    for scores in itertools.chain.from_iterable(model.baselines for model in models):
        baselines[scores.label] = ModelResult(
            label=scores.label, state=FINISHED, metrics=scores.metrics
        )
    best = best_models(models, comparison.members[0].config.evaluation)
    return ComparisonResults(
        name=comparison.name, best=best, models=models, baselines=list(baselines.values())
    )


def model_result(member: Member, workspace: Workspace) -> ModelResult:
    """Return the state of one model, and its figures if it has been trained and evaluated."""
    pipeline = member.config.name
    expected = member.config.digest(*_SECTIONS)
    facts: dict[str, Any] = {"label": member.label, "pipeline": pipeline, "state": WAITING}
    runs = store.runs_of(workspace.pipeline(pipeline))
    matching = [run for run in runs if _recorded_digest(run) == expected]
    if not matching:
        return ModelResult(**facts)
    states = ((run, run.progress(NODES)) for run in reversed(matching))
    evaluated = next(((run, s) for run, s in states if s.outputs(LAST_NODE)), None)
    if evaluated is not None:
        training = member.config.training.model_copy(update={"seed": 0})
        recipe = member.config.model_copy(update={"training": training}).digest(*_SECTIONS)
        facts |= _figures(evaluated[1]) | {"run": evaluated[0].id, "recipe": recipe}
    last = matching[-1]
    status = store.status(last)
    if status in (SUCCEEDED, NOT_BLESSED):
        # `regard run --to` may have ended it earlier.
        status = FINISHED if facts.get("run") == last.id else WAITING
    failure = last.record().failure
    if status == FAILED and failure is not None and failure.error:
        facts["error"] = ": ".join(filter(None, (failure.node, failure.error)))
    return ModelResult(**facts | {"state": status, "log": str(last.log)})


def _recorded_digest(run: store.Run) -> str | None:
    """Return the digest of what the result of a run depends on; None if it cannot be read."""
    config = recorded_config(run)
    return config.digest(*_SECTIONS) if config else None


def _figures(state: Progress) -> dict[str, object]:
    training = training_record(state)
    predictions = state.output_folder("Predictor", "predictions")
    decoding = read_json_object(predictions / prediction_table.SUMMARY)
    corpus = read_json_object(state.output_folder("CorpusGen", "findings") / "corpus.json")
    folder = state.output_folder(LAST_NODE, "evaluation")
    evaluation = Evaluation.read(folder)
    lengths = LengthScores.read(folder)
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
    average = training.get("average") or {}
    if "perplexity" in average:
        return average["perplexity"]
    for entry in training.get("history", []):
        if entry["step"] == training.get("best_step"):
            return entry.get("perplexity")
    return None
