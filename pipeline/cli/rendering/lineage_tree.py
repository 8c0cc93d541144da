"""Draws the lineage of a model as a tree from the model down to the data."""

import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from regard.components.settings.data import paths_in
from regard.core import formatting
from regard.pipeline.lineage.config_changes import ConfigChange
from regard.pipeline.lineage.executions import NodeExecution
from regard.pipeline.lineage.failed_runs import FailedRun
from regard.pipeline.lineage.trace import DataLineage, Lineage

_LABEL_WIDTH = 11
_UNLIMITED = 100_000
_CODE = {"version": "regard", "commit": "commit"}
_SPAN_CHANGES = {
    "new": "with",
    "version": "another version of",
    "replayed": "only replaying",
    "removed": "without",
}


def show(lineage: Lineage, console: Console) -> None:
    """Print a lineage."""
    console.width = _UNLIMITED  # a path that is wrapped cannot be copied
    console.print(_tree(lineage), soft_wrap=True)


def _tree(lineage: Lineage) -> Tree:
    root = Tree(Text(lineage.model, "bold"), guide_style="dim")
    for label, text in _facts(lineage):
        if text:
            root.add(_labelled(label, text))
    if lineage.nodes:
        _add_nodes(root, lineage.nodes)
    if not lineage.record.imported.format:
        _add_data(root, lineage.data)
    _add_failed_runs(root, "since then", lineage.failed_since)
    _add_failed_runs(root, "before it", lineage.failed_before)
    _add_parents(root, lineage)
    if lineage.missing:
        branch = root.add(Text("missing", "bold yellow"))
        for text in lineage.missing:
            branch.add(Text(text, "yellow"))
    return root


def _labelled(label: str, text: str) -> Text:
    return Text(f"{label:<{_LABEL_WIDTH}}", "bold").append(text, "not bold")


def _join(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _facts(lineage: Lineage) -> Iterator[tuple[str, str]]:
    record, run = lineage.record, lineage.run
    yield "folder", lineage.path
    by_run = f"by run {run['id']}" if "id" in run else ""
    by_run += f" (context {run['context']})" if "context" in run else ""
    description = _join(by_run, formatting.format_duration(run.get("seconds")))
    if record.rollback_of is not None:
        reason = f": {record.reason}" if record.reason else ""
        replaced = f"replaces {record.name}@{record.rolled_back_from}{reason}"
        yield "rollback", _join(_utc(record.created), replaced)
        yield "first as", _join(f"{record.name}@{record.rollback_of}", description)
    else:
        yield "pushed", _join(_utc(record.created), description)
    yield "scores", _scores({name: metric.value for name, metric in record.metrics.items()})
    yield "decision", record.blessing
    if record.imported.format:
        yield "imported", f"from the folder {record.imported.folder} ({record.imported.format})"
        yield "licence", record.imported.licence or "the folder states none"
        files = record.imported.files.items()
        yield "files", _join(*(f"{name} sha256:{digest[:12]}" for name, digest in files))
    yield "code", _join(*(f"{_CODE[key]} {_short(text)}" for key, text in record.regard.items()))
    yield "libraries", _join(*(f"{name} {number}" for name, number in record.stack.items()))
    yield "seed", "" if lineage.seed is None else str(lineage.seed)
    yield "started", _start(record.warm_start.start.get("model"))
    yield "repeat", run.get("command", "")


def _short(text: str) -> str:
    """Shorten a commit's 40 characters; a suffix for uncommitted changes remains."""
    return text[:12] + text[40:] if len(text) >= 40 else text


def _start(model: str | None) -> str:
    return f"from the weights of {model}" if model else ""


def _utc(created: str) -> str:
    time = formatting.format_created(created)
    return f"{time} UTC" if time else ""


def _scores(values: Mapping[str, float]) -> str:
    return _join(*(f"{name} {value:.4g}" for name, value in values.items()))


def _add_nodes(root: Tree, nodes: Sequence[NodeExecution]) -> None:
    """Add the executions from the Pusher back to the data."""
    outputs = itertools.chain.from_iterable(node.outputs for node in nodes)
    folder = os.path.commonpath([output.uri for output in outputs])
    branch = root.add(_labelled("nodes", folder))
    width = max(len(node.node) for node in nodes)
    for node in nodes:
        text = Text(f"{node.node:<{width}}  {formatting.format_duration(node.seconds):<7}")
        if node.execution is not None:
            text.append(f"  execution {node.execution}", "dim")
        if node.cached:
            text.append(f"  cached, of run {node.run}" if node.run else "  cached", "cyan")
        leaf = branch.add(text)
        for output in node.outputs:
            uri = Text(os.path.relpath(output.uri, folder), "dim")
            leaf.add(uri if output.exists else uri.append("  deleted", "yellow"))


def _add_data(root: Tree, data: DataLineage) -> None:
    digest = f"fingerprint {data.fingerprint[:12]}" if data.fingerprint else ""
    rows = formatting.format_rows({"rows": data.rows})
    branch = root.add(_labelled("data", _join(rows, digest, data.state)))
    span_branches = _add_spans(branch, data.spans)
    for source in data.sources:
        rows = formatting.format_rows(source)
        for file in source["files"]:
            text = Text(file).append(f"  {rows}" if rows else "", "dim")
            span_branches.get(file, branch).add(text)


def _add_spans(branch: Tree, spans: Sequence[dict[str, Any]]) -> dict[str, Tree]:
    """Add a branch for each span; return the branch of each of their files."""
    branches: dict[str, Tree] = {}
    for span in spans:
        version = f"version {span['version']}" if span["version"] is not None else ""
        digest = f"fingerprint {span['fingerprint'][:12]}" if "fingerprint" in span else ""
        details = _join(version, formatting.format_rows(span), digest)
        text = Text(f"span {span['name']}").append(f"  {details}" if details else "", "dim")
        span_branch = branch.add(text)
        for files in span["files"].values():
            branches.update(dict.fromkeys(paths_in(files), span_branch))
    return branches


def _add_failed_runs(branch: Tree, label: str, failed_runs: Sequence[FailedRun]) -> None:
    """Add runs that pushed nothing, with the reasons."""
    for run in failed_runs:
        spans = formatting.format_spans(run["spans"])
        text = _join(f"run {run['id']} {run['status']}", f"spans {spans}" if spans else "")
        branch.add(_labelled(label, f"{text}: {run['reason']}" if run["reason"] else text))


def _add_parents(root: Tree, lineage: Lineage) -> None:
    """Add each version below its successor, with the changes in between."""
    branch, imported = root, lineage.record.imported
    for parent in lineage.parents:
        branch = branch.add(_labelled("parent", parent["model"]))
        if len(parent) == 1:  # it was removed
            return
        start = _start(parent["started_from"])
        scores = {name: metric["value"] for name, metric in parent["metrics"].items()}
        facts = f"pushed {_utc(parent['created'])}", _scores(scores), start and f"started {start}"
        branch.add(Text(_join(*facts)))
        for change in parent["changes"]:
            sides = f"{_value(change, 'a')} → {_value(change, 'b')}"
            branch.add(Text(f"changed since: {change['key']} {sides}", "cyan"))
        if not parent["same_data"]:
            changes = _span_changes(parent["span_changes"])
            branch.add(Text(f"changed since: the data{changes}", "cyan"))
        _add_failed_runs(branch, "before it", parent["failed_before"])
    if imported.format:
        reason = f"the version was imported from the folder {imported.folder}"
    else:
        reason = "no model was in production"
    branch.add(_labelled("parent", f"none: {reason}"))


def _value(change: ConfigChange, side: Literal["a", "b"]) -> str:
    value = change.get(side, "-")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _span_changes(changes: Mapping[str, Sequence[str]]) -> str:
    parts = [
        f"{text} {'span' if len(changes[kind]) == 1 else 'spans'} {', '.join(changes[kind])}"
        for kind, text in _SPAN_CHANGES.items()
        if changes[kind]
    ]
    return f": {_join(*parts)}" if parts else ""
