"""What the run store knows about the models of a comparison: how far each is, and how good."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components import predictions
from components.files import sha256_file
from pipeline import progress, runs
from pipeline.compare.members import Comparison, Member
from pipeline.config import Config, restored
from pipeline.nodes import NODES
from pipeline.progress import DONE, Progress
from pipeline.runs import Run
from pipeline.workspace import PipelinePaths, Workspace

LAST = "Evaluator"  # nothing is pushed from a comparison
WAITING = "waiting"
FINISHED = "finished"
SIDE_BY_SIDE = "side_by_side"  # in a run's record: how many models shared the machine

# All that a result depends on; the rest of a configuration only says where things go.
_SECTIONS = ("task", "data", "tokenizer", "model", "training", "search", "evaluation")


def gather(comparison: Comparison, workspace: Workspace) -> dict[str, Any]:
    """Everything about a comparison as plain JSON values, read from the pipelines' own files."""
    models = [look(member, workspace) for member in comparison.members]
    baselines = {
        entry["baseline"]["label"]: entry["baseline"] for entry in models if "baseline" in entry
    }
    return {
        "name": comparison.name,
        "models": models,
        "baselines": [
            {"label": label, "state": FINISHED, "metrics": found["metrics"]}
            for label, found in baselines.items()
        ],
    }


def look(member: Member, workspace: Workspace) -> dict[str, Any]:
    """One model: its ``state``, and its figures where it has been trained and evaluated."""
    paths = workspace.pipeline(member.config.name)
    found = own_runs(paths, member.config)
    entry: dict[str, Any] = {
        "label": member.label,
        "pipeline": member.config.name,
        "state": WAITING,
    }
    if found:
        entry.update(_standing(found[-1], _status(found[-1], member, workspace)))
    for run in reversed(found):
        state = followed(run)
        if state.outputs(LAST):
            entry.update(_figures(state), run=run.id)
            entry[SIDE_BY_SIDE] = _side_by_side(found)
            break
    return entry


def own_runs(paths: PipelinePaths, config: Config) -> list[Run]:
    """The runs of a pipeline that had this very configuration, oldest first."""
    wanted = config.digest(*_SECTIONS)
    return [run for run in runs.runs_of(paths) if _digest(run) == wanted]


def is_finished(member: Member, workspace: Workspace) -> bool:
    """Whether the model has been evaluated by a run with this very configuration."""
    paths = workspace.pipeline(member.config.name)
    return any(followed(run).outputs(LAST) for run in own_runs(paths, member.config))


def followed(run: Run) -> Progress:
    """The progress that a run's events add up to."""
    return progress.read(run.events, NODES)


def _digest(run: Run) -> str | None:
    """Of a run's configuration, read anew: so keys that did not exist then have their defaults."""
    try:
        return restored(run.settings()).digest(*_SECTIONS)
    except (ValueError, LookupError, TypeError):
        return None


def _status(run: Run, member: Member, workspace: Workspace) -> str:
    listed = runs.listing(workspace, member.config.name)  # tells a killed run from one that runs
    return next(r.get("status", runs.KILLED) for r in listed if r["id"] == run.id)


def _standing(run: Run, status: str) -> dict[str, Any]:
    state = followed(run)
    if status in (runs.SUCCEEDED, runs.NOT_BLESSED):
        status = FINISHED if state.outputs(LAST) else WAITING  # it may have been a run --to a node
    told: dict[str, Any] = {"state": status, "log": str(run.log)}
    node = state.running()
    if status == runs.RUNNING and node is not None:
        told["detail"] = f"{node.name}: {node.text}" if node.text else node.name
    failure = run.record().get("failure") or {}
    if status == runs.FAILED and failure.get("error"):
        told["detail"] = ": ".join(filter(None, (failure.get("node"), failure["error"])))
    return told


def _side_by_side(found: list[Run]) -> int:
    """How many models were trained at once when this one was."""
    for run in reversed(found):
        record = run.record()
        if run.nodes().get("Trainer", {}).get("state") == DONE:
            return int(record.get(SIDE_BY_SIDE, 1))
    return 1


def _figures(state: Progress) -> dict[str, Any]:
    training = _json(state, "Trainer", "model_run", "training.json")
    decoding = _json(state, "Predictor", "predictions", predictions.SUMMARY)
    scores = _json(state, LAST, "evaluation", "metrics.json")
    lengths = _json(state, LAST, "evaluation", "by_length.json")
    history = training.get("history", [])
    figures = {
        "parameters": training.get("parameters"),
        "training_seconds": training.get("seconds"),
        "epochs": training.get("epochs"),
        "steps": training.get("steps"),
        "ended_by": training.get("finished"),
        "perplexity": _perplexity(training),
        "metrics": scores.get("metrics"),
        "baseline": scores.get("baseline"),
        "test_rows": scores.get("rows"),
        "sentences_per_second": decoding.get("sentences_per_second"),
        "decode_batch_size": decoding.get("batch_size"),
        "device": decoding.get("device"),
        "by_length": lengths.get("buckets"),
        "length_unit": lengths.get("unit"),
        "history": history,
        "tokenizer": _digest_of(state, "TokenizerTrainer", "tokenizer", "*.model"),
        "references": _digest_of(state, LAST, "evaluation", "references.txt"),
    }
    return {name: value for name, value in figures.items() if value is not None}


def _perplexity(training: Mapping[str, Any]) -> float | None:
    """Of a piece of the eval split, with the exported weights: an average, or the best ones.

    None for what is no language model.
    """
    if "perplexity" in (averaged := training.get("averaged") or {}):
        return float(averaged["perplexity"])
    best = (e for e in training.get("history", []) if e["step"] == training.get("best_step"))
    return next((entry.get("perplexity") for entry in best), None)


def _digest_of(state: Progress, node: str, key: str, pattern: str) -> str | None:
    """Tells whether two models really had the same: data may change without the configuration."""
    uri = state.outputs(node).get(key)
    files = sorted(Path(uri).glob(pattern)) if uri else []
    digests = [f"{path.name} {sha256_file(path)}" for path in files]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16] if digests else None


def _json(state: Progress, node: str, key: str, name: str) -> dict[str, Any]:
    uri = state.outputs(node).get(key)
    try:
        content = json.loads((Path(uri) / name).read_text(encoding="utf-8")) if uri else {}
    except (OSError, ValueError):  # somebody has tidied up: the rest can still be told
        return {}
    return content if isinstance(content, dict) else {}
