"""The summary of a run: data, model, scores, decision, published version and examples."""

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.components.common import prediction_table
from regard.components.common.run_progress import Progress
from regard.components.common.run_record import FAILED, INTERRUPTED
from regard.components.evaluator.results import Decision, Evaluation
from regard.components.registry.mirror import open_mirror
from regard.components.registry.records import PushResult
from regard.core.files import read_json_object
from regard.pipeline.prediction.sample_predictions import select_samples, shell_arguments
from regard.pipeline.runs.store import REPORT, Run, original_nodes

_SPAN_KEYS = ("span", "name", "version", "rows", "replayed", "available")
_MODEL_KEYS = ("parameters", "epochs", "steps", "batch_tokens", "seconds", "stop_reason")


def summarize(run: Run, state: Progress, command: str = "regard run CONFIG") -> dict[str, Any]:
    """Summarize a completed run from its artifacts; missing parts are omitted.

    Args:
        run: The run, with its final status in the record.
        state: The progress, which knows the output folders of the nodes.
        command: The command that runs the pipeline again, for the next commands.

    Returns:
        The output of ``regard run --json``. ``model`` has the size of the model and the extent of
        its training, ``blessing`` the decision of the Evaluator, ``pushed`` the published version
        and its folder, and ``next`` commands that may follow, each with what it does.
    """
    record = run.record()
    decision = Decision.read(state.output_folder("Evaluator", "blessing"))
    training = training_record(state)
    changes = read_json_object(state.output_folder("Augmenter", "findings") / "augmentation.json")
    table = state.output_folder("Predictor", "predictions") / prediction_table.CANDIDATE
    report = state.output_folder("Reporter", "report") / REPORT
    summary: dict[str, Any] = {
        "name": run.name,
        "run": run.id,
        "status": record.status,
        "seconds": record.seconds,
        "nodes": {node.name: node.facts() for node in state.nodes.values()},
        "data": _data(run, state),
        "augmentation": list(changes.get("steps", {}).values()),
        "model": _select(training, _MODEL_KEYS),
        "scores": _scores(state),
        "blessing": decision and decision.model_dump(include={"blessed", "sentence"}),
        "pushed": _pushed_version(state),
        "not_pushed": _reason_not_pushed(state) if decision and decision.blessed else None,
        "examples": select_samples(table, run.settings().get("data", {})),
        "report": str(report) if report.is_file() else None,
        "failure": record.failure and record.failure.to_dict(),
        "directory": str(run.directory),
        "log": str(run.log),
    }
    result = {k: v for k, v in summary.items() if v not in (None, {}, [])}
    result["next"] = _next_commands(result, state, command)
    return result


def training_record(state: Progress) -> dict[str, Any]:
    """Read the Trainer's ``training.json``; empty before its end."""
    return read_json_object(state.output_folder("Trainer", "model_run") / "training.json")


def _data(run: Run, state: Progress) -> dict[str, Any]:
    corpus = read_json_object(state.output_folder("CorpusGen", "findings") / "corpus.json")
    originals = original_nodes(run, state.nodes)
    findings: dict[str, None] = {}
    for _, node in originals.values():
        findings |= dict.fromkeys(node.warnings)
    spans = [_select(span, _SPAN_KEYS) for span in corpus.get("spans", [])]
    summary = {
        "rows": corpus.get("rows"),
        "findings": list(findings),
        "spans": spans,
        "first_rows": corpus.get("first_rows", []),
    }
    return {key: value for key, value in summary.items() if value}


def _select(facts: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return those of the given keys that are set."""
    return {key: facts[key] for key in keys if key in facts}


def _scores(state: Progress) -> list[dict[str, Any]]:
    """The metrics; an undefined one has the value None, because JSON has no NaN."""
    evaluation = Evaluation.read(state.output_folder("Evaluator", "evaluation"))
    if evaluation is None:
        return []
    scores = []
    for name, metric in evaluation.metrics.items():
        score = {**metric.model_dump(), "value": _finite_or_none(metric.value)}
        baselines = [
            {"label": baseline.label, "value": _finite_or_none(baseline.metrics[name].value)}
            for baseline in evaluation.baselines
            if name in baseline.metrics
        ]
        if baselines:
            score["baselines"] = baselines
        scores.append(score)
    return scores


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _pushed_version(state: Progress) -> dict[str, str]:
    facts = state.pushed_model()
    if not facts.get("pushed"):
        return {}
    path = str(facts.get("pushed_destination", ""))
    return {"version": str(facts.get("pushed_version") or Path(path).name), "path": path}


def _reason_not_pushed(state: Progress) -> str | None:
    """Why the Pusher did not publish a model that passed evaluation."""
    result = PushResult.read(state.output_folder("Pusher", "pushed_model"))
    return None if result is None or result.pushed else result.text.removeprefix("Not pushed. ")


def _next_commands(summary: dict[str, Any], state: Progress, command: str) -> list[dict[str, str]]:
    """Return commands that may follow, each with what it does."""
    if summary.get("status") in (FAILED, INTERRUPTED):
        return [{"command": command, "about": "continue"}]
    examples = summary.get("examples")
    text = shell_arguments(examples[0]) if examples else '"..."'
    abouts = {}
    if "pushed" in summary:
        registry = Path(summary["pushed"]["path"]).parents[1]
        is_own = registry == Run(Path(summary["directory"])).workspace.registry
        mirror = open_mirror(registry)
        source = mirror.uri if mirror else str(registry)
        option = "" if is_own else f"--registry {shlex.quote(source)} "
        abouts[f"regard predict {option}{summary['name']} {text}"] = "use the model"
        abouts[f"regard serve {option}{summary['name']} --open"] = "use it in a browser"
    elif "model" in state.outputs("Trainer"):
        model = shlex.quote(state.outputs("Trainer")["model"])
        abouts[f"regard predict {model} {text}"] = "use the model"
    if "report" in summary:
        abouts[f"regard report {summary['name']} --open"] = "open the report"
    else:
        abouts[f"regard runs {summary['name']}"] = "list the runs"
    if "blessing" in summary and not summary["blessing"]["blessed"] and "pushed" not in summary:
        abouts[f"{command} --publish-anyway"] = "publish the model as it is"
    return [{"command": command, "about": about} for command, about in abouts.items()]
