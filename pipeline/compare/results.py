"""The results of a comparison, read from the runs of its pipelines, and its folder."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any, TypedDict

from regard.components.common import prediction_table
from regard.components.common.files import atomic_write, read_json_object
from regard.components.common.yaml_text import to_yaml
from regard.pipeline import progress, run_store
from regard.pipeline.compare.matrix import Comparison, Member
from regard.pipeline.config import config_from_values
from regard.pipeline.config.nodes import NODES
from regard.pipeline.doctor import machine
from regard.pipeline.progress import Progress
from regard.pipeline.run_store import Run
from regard.pipeline.workspace import Workspace

LAST_NODE = "Evaluator"  # a comparison pushes nothing
WAITING = "waiting"
FINISHED = "finished"

# All that a result depends on; the other sections say where things are stored.
_SECTIONS = ("task", "data", "tokenizer", "model", "training", "search", "evaluation")


class MetricResult(TypedDict, total=False):
    """One metric of the test split, as the Evaluator writes it."""

    name: str
    label: str
    value: float
    signature: str
    scale: float
    higher_is_better: bool


class LengthBucket(TypedDict):
    """One length bucket of the test split, as the Evaluator writes it."""

    low: int
    high: int | None
    rows: int
    scores: dict[str, dict[str, float]]


class ModelResult(TypedDict, total=False):
    """The state of one model, and its figures if it has been evaluated."""

    label: str
    pipeline: str
    state: str
    log: str
    error: str
    run: str
    parameters: int
    training_seconds: float
    epochs: int
    steps: int
    stop_reason: str
    perplexity: float
    metrics: dict[str, MetricResult]
    baseline: ModelResult
    test_rows: int
    sentences_per_second: float
    decode_batch_size: int
    device: str
    by_length: list[LengthBucket]
    length_unit: str
    history: list[dict[str, float]]


class ComparisonResults(TypedDict):
    """The results of all models, and of baselines that need no model."""

    name: str
    models: list[ModelResult]
    baselines: list[ModelResult]


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
        content = member.config.model_dump(mode="json")
        text = to_yaml(content)
        path = self.root / "configs" / f"{member.label}.yaml"
        # Variables have been substituted; escape what only looks like one.
        atomic_write(path, text.replace("${", "$${"))
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
        text = json.dumps({**results, **facts}, ensure_ascii=False, indent=2) + "\n"
        atomic_write(self.root / "results.json", text)
        atomic_write(self.root / "table.md", table.markdown(results, command))
        plots.write_plots(results, self.root)


def gather(comparison: Comparison, workspace: Workspace) -> ComparisonResults:
    """Collect the results of all models from their pipelines' files."""
    models = [model_result(member, workspace) for member in comparison.members]
    baselines = {m["baseline"]["label"]: m["baseline"] for m in models if "baseline" in m}
    return {
        "name": comparison.name,
        "models": models,
        "baselines": [
            {"label": label, "state": FINISHED, "metrics": baseline["metrics"]}
            for label, baseline in baselines.items()
        ],
    }


def model_result(member: Member, workspace: Workspace) -> ModelResult:
    """Return the state of one model, and its figures if it has been trained and evaluated."""
    name = member.config.name
    result: ModelResult = {"label": member.label, "pipeline": name, "state": WAITING}
    expected = member.config.digest(*_SECTIONS)
    runs = run_store.runs_of(workspace.pipeline(name))
    matching = [run for run in runs if _config_digest(run) == expected]
    if not matching:
        return result
    states = ((run, progress.read(run.events, NODES)) for run in reversed(matching))
    evaluated = next(((run, s) for run, s in states if s.outputs(LAST_NODE)), None)
    if evaluated is not None:
        result |= _figures(evaluated[1]) | {"run": evaluated[0].id}
    last = matching[-1]
    result |= {"state": run_store.status(last), "log": str(last.log)}
    if result["state"] in (run_store.SUCCEEDED, run_store.NOT_BLESSED):
        # `regard run --to` may have ended it earlier.
        result["state"] = FINISHED if result.get("run") == last.id else WAITING
    failure = last.record().get("failure") or {}
    if result["state"] == run_store.FAILED and failure.get("error"):
        result["error"] = ": ".join(filter(None, (failure.get("node"), failure["error"])))
    return result


def _config_digest(run: Run) -> str | None:
    """Return the digest of a run's configuration, with defaults for keys that are new."""
    try:
        return config_from_values(run.settings()).digest(*_SECTIONS)
    except (ValueError, LookupError, TypeError):
        return None


def _figures(state: Progress) -> ModelResult:
    training = _read_json(state, "Trainer", "model_run", "training.json")
    decoding = _read_json(state, "Predictor", "predictions", prediction_table.SUMMARY)
    scores = _read_json(state, LAST_NODE, "evaluation", "metrics.json")
    lengths = _read_json(state, LAST_NODE, "evaluation", "by_length.json")
    figures: dict[str, object] = {
        "parameters": training.get("parameters"),
        "training_seconds": training.get("seconds"),
        "epochs": training.get("epochs"),
        "steps": training.get("steps"),
        "stop_reason": training.get("stop_reason"),
        "perplexity": _perplexity(training),
        "metrics": scores.get("metrics"),
        "baseline": scores.get("baseline"),
        "test_rows": scores.get("rows"),
        "sentences_per_second": decoding.get("sentences_per_second"),
        "decode_batch_size": decoding.get("batch_size"),
        "device": decoding.get("device"),
        "by_length": lengths.get("buckets"),
        "length_unit": lengths.get("unit"),
        "history": training.get("history", []),
    }
    known: Any = {name: value for name, value in figures.items() if value is not None}
    return known


def _perplexity(training: dict[str, Any]) -> Any:
    """Return the perplexity per token of the exported weights on the eval split.

    None if the model is not a language model.
    """
    if "perplexity" in (average := training.get("average") or {}):
        return average["perplexity"]
    best = (e for e in training.get("history", []) if e["step"] == training.get("best_step"))
    return next((entry.get("perplexity") for entry in best), None)


def _read_json(state: Progress, node: str, key: str, name: str) -> dict[str, Any]:
    """Read an output file; the empty dictionary if it was deleted or is damaged."""
    uri = state.outputs(node).get(key)
    return read_json_object(Path(uri) / name) if uri else {}
