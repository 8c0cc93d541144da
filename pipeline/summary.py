"""The end of a run as data: what went in, what came out, how good it is, and where it lies."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.words import counted, figure, some_spans
from pipeline import examples, progress, runs
from pipeline.progress import CACHED, DONE, FAILED, STOPPED, NodeProgress, Progress
from pipeline.runs import Run
from pipeline.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import Console


def summarise(run: Run, state: Progress, config_path: str = "CONFIG") -> dict[str, Any]:
    """Reads the artifacts of a run that ended; what is not there is left out.

    Args:
        run: its record says how it ended.
        state: knows where the artifacts of each node lie.
        config_path: the YAML file as the user gave it, for the next commands.
    """
    record = run.record()
    blessing = _json(state, "Evaluator", "blessing", "blessing.json")
    parts: dict[str, Any] = {
        "name": record.get("name"),
        "run": run.id,
        "status": record.get("status"),
        "seconds": record.get("seconds"),
        "nodes": {node.name: node.facts() for node in state.nodes.values()},
        "data": _data(run, state),
        "model": _model(state),
        "scores": _scores(state),
        "blessing": {k: blessing[k] for k in ("blessed", "sentence") if k in blessing},
        "pushed": _pushed(state),
        "not_pushed": _not_pushed(state) if blessing.get("blessed") else None,
        "examples": _examples(run, state),
        "report": _report(state),
        "failure": record.get("failure"),
        "directory": str(run.directory),
        "log": str(run.log),
    }
    parts["next"] = _next(parts, state, config_path)
    return {key: value for key, value in parts.items() if value not in (None, {}, [])}


def _file(state: Progress, node: str, key: str, name: str) -> Path | None:
    """A file of an output of a node that ended well in this run."""
    uri = state.outputs(node).get(key)
    path = Path(uri) / name if uri else None
    return path if path is not None and path.is_file() else None


def _json(state: Progress, node: str, key: str, name: str) -> dict[str, Any]:
    path = _file(state, node, key, name)
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # the summary must not make a good run fail
        return {}
    return content if isinstance(content, dict) else {}


def _data(run: Run, state: Progress) -> dict[str, Any]:
    corpus = _json(state, "CorpusGen", "findings", "corpus.json")
    told = [text for node in state.nodes.values() for text in _warnings(run, node)]
    found = {"rows": corpus.get("rows", {}), "findings": list(dict.fromkeys(told))}
    if spans := corpus.get("spans"):
        found["spans"] = [{key: one[key] for key in _OF_SPAN if key in one} for one in spans]
    return found


_OF_SPAN = ("span", "name", "version", "rows", "replayed", "available")


def _warnings(run: Run, node: NodeProgress) -> list[str]:
    """What a node warned of: in this run, or in the one whose result the cache gave again."""
    if node.state != CACHED or not node.outputs:
        return node.warnings
    for directory in sorted(run.directory.parent.iterdir(), reverse=True):
        path = Run(directory).events
        if directory == run.directory or not path.is_file():
            continue
        made = progress.read(path).nodes.get(node.name)
        if made is not None and made.state == DONE and made.outputs == node.outputs:
            return made.warnings
    return []


def _model(state: Progress) -> dict[str, Any]:
    facts = _json(state, "Trainer", "model_run", "training.json")
    wanted = ("parameters", "epochs", "steps", "seconds", "finished")
    return {name: facts[name] for name in wanted if name in facts}


def _scores(state: Progress) -> list[dict[str, Any]]:
    """The metrics; one that is undefined has no value, for JSON has none that is no number."""
    content = _json(state, "Evaluator", "evaluation", "metrics.json")
    found = [
        {**metric, "value": _finite(metric["value"])}
        for metric in content.get("metrics", {}).values()
    ]
    if baseline := content.get("baseline"):
        for metric in found:
            value = _finite(baseline["metrics"][metric["name"]]["value"])
            metric["baseline"] = {"label": baseline["label"], "value": value}
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _pushed(state: Progress) -> dict[str, Any]:
    node = state.nodes.get("Pusher")
    facts = node.properties.get("pushed_model", {}) if node else {}
    if not facts.get("pushed"):
        return {}
    path = str(facts.get("pushed_destination", ""))
    return {"version": str(facts.get("pushed_version") or Path(path).name), "path": path}


def _not_pushed(state: Progress) -> str | None:
    """Why the Pusher kept a model back that is good enough."""
    told = _json(state, "Pusher", "pushed_model", "pushed.json")
    return None if told.get("pushed", True) else told["text"].removeprefix("Not pushed. ")


def _report(state: Progress) -> str | None:
    path = _file(state, "Reporter", "report", "report.html")
    return str(path) if path else None


def _examples(run: Run, state: Progress) -> list[dict[str, Any]]:
    path = _file(state, "Predictor", "predictions", "candidate.parquet")
    return examples.examples(path, run.settings().get("data", {})) if path else []


def _next(parts: dict[str, Any], state: Progress, config_path: str) -> list[str]:
    commands = []
    if parts["status"] in (runs.FAILED, runs.INTERRUPTED):
        return [f"regard run {shlex.quote(config_path)}"]
    text = examples.arguments(parts["examples"][0]) if parts["examples"] else '"..."'
    if parts["pushed"]:
        commands.append(f"regard predict {_registry(parts)}{parts['name']} {text}")
    elif "model" in state.outputs("Trainer"):
        model = shlex.quote(state.outputs("Trainer")["model"])
        commands.append(f"regard predict {model} {text}")
    commands.append(f"regard runs {parts['name']}")
    if logs := state.outputs("Trainer").get("model_run"):
        commands.append(f"tensorboard --logdir {shlex.quote(logs)}")
    return commands


def _registry(parts: dict[str, Any]) -> str:
    """The option that names the registry, where it is not the workspace's own."""
    used = Path(parts["pushed"]["path"]).parents[1]
    home = Path(parts["directory"]).parents[3]  # <home>/pipelines/<name>/runs/<run>
    return "" if used == Workspace(home).registry else f"--registry {shlex.quote(str(used))} "


def print_rows(rows: list[tuple[str, str]], console: Console) -> None:
    """Prints names and texts: as a table in a terminal, else each on one line, however long."""
    from rich.table import Table
    from rich.text import Text

    if console.is_terminal:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, text in rows:
            table.add_row(name, Text(text))
        console.print(table)
        return
    margin = max((len(name) for name, _ in rows), default=0)  # a log or a pipe has no width
    for name, text in rows:
        console.print(Text(f"{name:<{margin}}  {text}"), soft_wrap=True)


def show(summary: dict[str, Any], console: Console) -> None:
    """Prints the summary as one table, then the examples and the next commands."""
    from rich.text import Text

    print_rows(list(_rows(summary)), console)
    for example in summary.get("examples", []):
        inputs, answer, wrong = examples.lines(example)
        console.print()
        for text in inputs:
            console.print(Text(f"  {text}"), soft_wrap=True)
        console.print(Text(f"  → {answer}", "" if wrong else "green"), soft_wrap=True)
        for text in wrong:
            console.print(Text(f"    reference: {text}", "dim"), soft_wrap=True)
    if summary.get("next"):
        console.print()
        for name, command in zip(["next"] + [""] * 9, summary["next"], strict=False):
            # Unwrapped, so that it can be copied as it is.
            console.print(Text(f"{name:<6}{command}"), soft_wrap=True)


def _rows(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    data, model = summary.get("data", {}), summary.get("model", {})
    if data.get("rows"):
        yield "data", ", ".join(f"{count:,} {split}" for split, count in data["rows"].items())
    if data.get("spans"):
        yield "spans", some_spans(data["spans"])
    for index, finding in enumerate(data.get("findings", [])):
        yield "" if index else "findings", finding
    if model:
        yield "model", _model_text(model)
    for index, score in enumerate(summary.get("scores", [])):
        scale = score.get("scale", 100.0)
        label = score.get("label", score["name"])
        value = figure(score["value"], scale)
        if sure := score.get("interval"):
            value += f" [{figure(sure['low'], scale)}, {figure(sure['high'], scale)}]"
        if beside := score.get("baseline"):
            value += f" ({beside['label']}: {figure(beside['value'], scale)})"
        text = f"{label} {value}  {score.get('signature', '')}".rstrip()
        yield "" if index else "scores", text
    if "blessing" in summary:
        yield "blessing", summary["blessing"].get("sentence", "")
    if "pushed" in summary:
        yield "pushed", f"version {summary['pushed']['version']}: {summary['pushed']['path']}"
    if "not_pushed" in summary:
        yield "not pushed", summary["not_pushed"]
    if "report" in summary:
        yield "report", summary["report"]
    stopped = [n for n, v in summary["nodes"].items() if v["state"] in (FAILED, STOPPED)]
    if stopped:
        yield "ended at", ", ".join(stopped)


def _model_text(model: dict[str, Any]) -> str:
    from pipeline.live import duration

    facts = []
    if "parameters" in model:
        facts.append(f"{model['parameters']:,} parameters")
    if model.get("epochs"):
        facts.append(counted(model["epochs"], "epoch"))
    if "steps" in model:
        facts.append(counted(model["steps"], "step"))
    if "seconds" in model:
        facts.append(f"trained in {duration(model['seconds'])}")
    if model.get("finished"):
        facts.append(f"ended by {model['finished']}")
    return ", ".join(facts)
