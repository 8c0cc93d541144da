"""The results of a comparison, read from the runs of its pipelines, and its folder."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any, TypedDict

from regard.components.common import prediction_table
from regard.components.common.files import atomic_write
from regard.components.common.yaml_text import to_yaml
from regard.pipeline import progress, run_store
from regard.pipeline.compare.matrix import Comparison, Member
from regard.pipeline.config import Config, config_from_values
from regard.pipeline.config.nodes import NODES
from regard.pipeline.doctor import machine
from regard.pipeline.progress import Progress
from regard.pipeline.run_store import Run
from regard.pipeline.workspace import PipelinePaths, Workspace

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


class Baseline(TypedDict):
    """Scores that need no model, such as those of the first sentence."""

    label: str
    metrics: dict[str, MetricResult]


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
    baseline: Baseline
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
    matching = _runs_with(member.config, workspace.pipeline(name))
    if matching:
        result |= _run_state(matching[-1])
    for run in reversed(matching):
        state = progress.read(run.events, NODES)
        if state.outputs(LAST_NODE):
            return result | _figures(state) | {"run": run.id}
    return result


def _runs_with(config: Config, paths: PipelinePaths) -> list[Run]:
    """Return the runs of a pipeline that used this very configuration, oldest first."""
    expected = config.digest(*_SECTIONS)
    return [run for run in run_store.runs_of(paths) if _config_digest(run) == expected]


def _config_digest(run: Run) -> str | None:
    """Return the digest of a run's configuration, with defaults for keys that are new."""
    try:
        return config_from_values(run.settings()).digest(*_SECTIONS)
    except (ValueError, LookupError, TypeError):
        return None


def _run_state(run: Run) -> ModelResult:
    status = run_store.status(run)
    if status in (run_store.SUCCEEDED, run_store.NOT_BLESSED):
        # `regard run --to` may have ended it earlier.
        evaluated = progress.read(run.events, NODES).outputs(LAST_NODE)
        status = FINISHED if evaluated else WAITING
    result: ModelResult = {"state": status, "log": str(run.log)}
    failure = run.record().get("failure") or {}
    if status == run_store.FAILED and failure.get("error"):
        result["error"] = ": ".join(filter(None, (failure.get("node"), failure["error"])))
    return result


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
    try:
        content = json.loads((Path(uri) / name).read_text(encoding="utf-8")) if uri else {}
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
