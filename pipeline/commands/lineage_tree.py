"""How the lineage of a model is drawn: a tree from the model down to the data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from rich.text import Text
from rich.tree import Tree

from components.words import rows_of, size, some_spans
from pipeline.commands.run_tables import moment, side_text, value_text
from pipeline.live import duration

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 11
_ENDLESS = 100_000


def show(found: dict[str, Any], console: Console) -> None:
    """Prints what ``pipeline.lineage`` found."""
    drawn = _tree(found)
    if console.is_terminal:
        console.print(drawn)
        return
    # A log or a pipe has no width, so each line gets what it needs.
    options = console.options.update(width=_ENDLESS)
    for line in console.render_lines(drawn, options, pad=False):
        console.print(Text("".join(segment.text for segment in line)), soft_wrap=True)


def _tree(found: dict[str, Any]) -> Tree:
    root = Tree(Text(found["model"], "bold"), guide_style="dim")
    for name, text in _facts(found):
        if text:
            root.add(_named(name, text))
    if found["nodes"]:
        _add_nodes(root, found["nodes"])
    _add_data(root, found["data"])
    _add_attempts(root, "since then", found["since"])
    _add_attempts(root, "before it", found["attempts"])
    _add_parents(root, found["parents"])
    if found["missing"]:
        branch = root.add(Text("missing", "bold yellow"))
        for text in found["missing"]:
            branch.add(Text(text, "yellow"))
    return root


def _named(name: str, text: str) -> Text:
    return Text(f"{name:<{_WIDTH}}", "bold").append(text, "not bold")


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    run, code = found["run"], found.get("regard", {})
    yield "folder", found["path"]
    by = f"by run {run['id']}" if "id" in run else ""
    made = _joined(by, duration(run.get("seconds")))
    if "rollback_of" in found:
        name = found["model"].partition("@")[0]
        reason = f": {found['reason']}" if "reason" in found else ""
        instead = f"instead of {name}@{found['rolled_back_from']}{reason}"
        yield "rollback", _joined(_created(found), instead)
        yield "made", _joined(f"as {name}@{found['rollback_of']}", made)
    else:
        yield "pushed", _joined(_created(found), made)
    yield "scores", _scores(found)
    yield "blessing", found.get("blessing", "")
    commit = value_text("commit", code["commit"]) if "commit" in code else ""
    version = f"regard {code['version']}" if "version" in code else ""
    yield "code", _joined(version, f"commit {commit}" if commit else "")
    stack = found.get("stack", {})
    yield "libraries", _joined(*(f"{name} {number}" for name, number in stack.items()))
    yield "seed", "" if found["seed"] is None else str(found["seed"])
    start = found.get("warm_start", {}).get("start")
    yield "started", f"from the weights of {start['model']}" if start else ""
    yield "again", run.get("command", "")


def _created(record: dict[str, Any]) -> str:
    try:
        created = datetime.fromisoformat(record.get("created", ""))
    except ValueError:
        return ""
    return f"{moment(created.astimezone(timezone.utc).timestamp())} UTC"


def _scores(record: dict[str, Any]) -> str:
    metrics = record.get("metrics", {})
    return _joined(*(f"{name} {metric['value']:.4g}" for name, metric in metrics.items()))


def _add_nodes(root: Tree, nodes: list[dict[str, Any]]) -> None:
    """From the Pusher back to the data: the work that was done, wherever the cache had it from."""
    folder = os.path.commonpath([output["uri"] for node in nodes for output in node["outputs"]])
    branch = root.add(_named("nodes", folder))
    width = max(len(node["node"]) for node in nodes)
    for node in nodes:
        text = Text(f"{node['node']:<{width}}  {duration(node['seconds']):<7}")
        text.append(f"execution {node['execution']}")
        if node["cached"]:
            text.append(f" of run {node['run']}", "cyan")
        leaf = branch.add(text)
        for output in node["outputs"]:
            uri = Text(os.path.relpath(output["uri"], folder), "dim")
            leaf.add(uri if output["there"] else uri.append("  gone", "yellow"))


def _add_data(root: Tree, data: dict[str, Any]) -> None:
    digest = f"fingerprint {data['fingerprint'][:12]}" if data["fingerprint"] else ""
    branch = root.add(_named("data", _joined(rows_of(data), digest, data["state"])))
    branches = _add_spans(branch, data)
    for source in data["sources"]:
        for file in source["files"]:
            known = "sha256" in file
            facts = [size(file["bytes"]), f"sha256 {file['sha256'][:12]}"] if known else []
            told = _joined(rows_of(source), *facts)
            text = Text(file["path"]).append(f"  {told}" if told else "", "dim")
            branches.get(file["path"], branch).add(text)


def _add_spans(branch: Tree, data: dict[str, Any]) -> dict[str, Tree]:
    """A branch for each span; which of them each file belongs to."""
    branches: dict[str, Tree] = {}
    for span in data.get("spans", ()):
        version = f"version {span['version']}" if span["version"] is not None else ""
        digest = f"fingerprint {span['fingerprint'][:12]}" if "fingerprint" in span else ""
        facts = _joined(version, rows_of(span), digest)
        own = branch.add(Text(f"span {span['name']}").append(f"  {facts}" if facts else "", "dim"))
        for value in span["files"].values():
            for paths in value.values() if isinstance(value, dict) else [value]:
                branches.update(dict.fromkeys(paths, own))
    return branches


def _add_attempts(branch: Tree, name: str, attempts: list[dict[str, Any]]) -> None:
    """Runs that pushed nothing, and why."""
    for one in attempts:
        spans = some_spans(one["spans"])
        text = _joined(f"run {one['id']} {one['status']}", f"spans {spans}" if spans else "")
        branch.add(_named(name, f"{text}: {one['reason']}" if one["reason"] else text))


def _add_parents(root: Tree, parents: list[dict[str, Any]]) -> None:
    """Each version below the one that was compared with it, with what was changed after it."""
    branch = root
    for parent in parents:
        branch = branch.add(_named("parent", parent["model"]))
        if "changes" not in parent:
            return
        started = f"started from the weights of {parent['started']}" if parent["started"] else ""
        branch.add(Text(_joined(f"pushed {_created(parent)}", _scores(parent), started)))
        for change in parent["changes"]:
            sides = f"{side_text(change, 'a')} → {side_text(change, 'b')}"
            branch.add(Text(f"changed since: {change['key']} {sides}", "cyan"))
        if not parent["same_data"]:
            branch.add(Text(f"changed since: the data{_spans(parent)}", "cyan"))
        _add_attempts(branch, "before it", parent["attempts"])
    branch.add(_named("parent", "none: there was nothing in production to compare with"))


def _spans(parent: dict[str, Any]) -> str:
    """What became of spans after a version."""
    told = [
        f"{text} {'span' if len(names) == 1 else 'spans'} {', '.join(names)}"
        for kind, text in _BECAME.items()
        if (names := parent["spans"][kind])
    ]
    return f": {_joined(*told)}" if told else ""


_BECAME = {
    "new": "with",
    "version": "another version of",
    "replayed": "only replaying",
    "gone": "without",
}
