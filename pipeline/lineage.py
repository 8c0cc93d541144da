"""From a served version back to the data: what made it, of what, and after which other version."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from components.corpus_gen import fingerprint
from components.corpus_gen.sources import resolve
from components.errors import UserError
from components.registry import RECORD, Registry, read_record
from pipeline import attempts, executions
from pipeline.config import restored
from pipeline.difference import differing, flattened
from pipeline.inputs import data_section
from pipeline.runs import Run
from pipeline.workspace import PipelinePaths, Workspace

# What of a version's record is told as it stands there.
_OWN = (
    *("created", "digest", "blessing", "metrics", "regard", "stack", "data_fingerprint", "config"),
    *("rollback_of", "rolled_back_from", "reason", "warm_start"),
)
UNCHANGED, CHANGED, GONE, UNKNOWN = "unchanged", "changed", "gone", "unknown"


def trace(version: Path, workspace: Workspace) -> dict[str, Any]:
    """All that is known about where a pushed version came from.

    ``nodes`` are the executions that made it, ``data`` the files it learned from, ``parents`` the
    versions it and its predecessors were compared with, back to the first. ``attempts`` are the
    runs between it and its parent that pushed nothing, ``since`` those between it and the next
    version; see ``attempts.between``. ``missing`` says in sentences what could not be found out.

    Args:
        version: the folder in the registry.
        workspace: where its pipeline ran, if it is here.

    Raises:
        UserError: the folder is no pushed version.
    """
    record = read_record(version)
    if not {"name", "version"} <= record.keys():
        raise UserError(
            f"there is no {RECORD} that names it, so nothing is known about this model",
            where=str(version),
            remedy="Give NAME or NAME@VERSION of the registry; the Pusher writes the file.",
        )
    paths = workspace.pipeline(record["name"])
    siblings = _siblings(version, record, workspace)
    missing: list[str] = []
    found = _executions(paths, record, missing)
    nodes = found.get("nodes", [])
    return {
        "model": f"{record['name']}@{record['version']}",
        "path": str(version),
        **{key: record[key] for key in _OWN if key in record},
        "seed": record.get("config", {}).get("training", {}).get("seed"),
        "run": _run(paths, record.get("run") or found.get("run"), missing),
        "nodes": nodes,
        "data": _data(paths, record, nodes, missing),
        **_attempts(paths, siblings, record, missing),
        "parents": _parents(paths, siblings, record, missing),
        "missing": missing,
    }


def _executions(paths: PipelinePaths, record: dict[str, Any], missing: list[str]) -> dict[str, Any]:
    if not paths.metadata.is_file():
        missing.append(
            f"The executions and artifacts: there is no ML Metadata at {paths.metadata}. "
            "Where the model was made elsewhere, set REGARD_HOME to the workspace of its pipeline."
        )
        return {}
    try:
        found = executions.behind(paths.metadata, record.get("mlmd_uuid", ""))
    except UserError as error:
        missing.append(f"The executions and artifacts: {error.where}: {error.message}.")
        return {}
    if found is None:
        missing.append(
            f"The executions and artifacts: {paths.metadata} does not know this version; it was "
            "pushed from another workspace, or ML Metadata was made anew."
        )
    return found or {}


def _run(paths: PipelinePaths, run_id: str | None, missing: list[str]) -> dict[str, Any]:
    """What the run's own record says; its id alone where the folder is gone."""
    if run_id is None:
        missing.append("The run: the version does not name it.")
        return {}
    run = Run(paths.runs / run_id)
    record = run.record()
    if not record:
        missing.append(f"The run's record: there is none at {run.directory}.")
        return {"id": run_id}
    wanted = ("started", "seconds", "command", "machine", "config")
    told = {key: record[key] for key in wanted if key in record}
    return {"id": run_id, **told, "directory": str(run.directory)}


def _data(
    paths: PipelinePaths, record: dict[str, Any], nodes: list[dict[str, Any]], missing: list[str]
) -> dict[str, Any]:
    """The files with the rows that each gave, and whether they are still what they were."""
    outputs = {
        output["key"]: output
        for node in nodes
        if node["node"] == "CorpusGen"
        for output in node["outputs"]
    }
    corpus = _corpus(outputs, missing)
    state, files, digests = _today(paths, record, missing)
    told: dict[str, Any] = {"fingerprint": record.get("data_fingerprint"), "state": state}
    if "examples" in outputs:
        told["examples"] = outputs["examples"]
    known = corpus or record
    told.update({key: known[key] for key in ("rows", "spans") if key in known})
    # Without the rows of each, the files that the configuration names.
    sources = corpus["files"] if corpus else [{"files": files}] if files else []
    told["sources"] = [
        {**source, "files": [_file(path, digests) for path in source["files"]]}
        for source in sources
    ]
    return told


def _corpus(outputs: dict[str, Any], missing: list[str]) -> dict[str, Any]:
    if "findings" not in outputs:
        return {}
    path = Path(outputs["findings"]["uri"]) / "corpus.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        missing.append(f"The rows of each data file: {path} is gone.")
        return {}


def _file(path: str, digests: dict[str, list[Any]]) -> dict[str, Any]:
    if path not in digests:
        return {"path": path}
    size, _, sha256 = digests[path]
    return {"path": path, "bytes": size, "sha256": sha256}


def _today(
    paths: PipelinePaths, record: dict[str, Any], missing: list[str]
) -> tuple[str, list[str], dict[str, list[Any]]]:
    """Whether the files are what they were, which they are, and if so, size and SHA-256 of each.

    The files of the spans that the version knows, whichever have come since.
    """
    try:
        data = data_section(restored(record["config"]), taken=record.get("spans"))
    except UserError as error:
        missing.append(f"Whether the data are the same: {error.where}: {error.message}.")
        return GONE, [], {}
    except (ValueError, LookupError, TypeError):
        missing.append("Whether the data are the same: another version of Regard made the model.")
        return UNKNOWN, [], {}
    files = [path for groups in resolve(data).values() for group in groups for path in group.files]
    with tempfile.TemporaryDirectory() as folder:  # a question writes nothing into the workspace
        cache, known = Path(folder) / "fingerprints.json", paths.root / "fingerprints.json"
        if known.is_file():
            shutil.copyfile(known, cache)
        if fingerprint(data, cache) != record.get("data_fingerprint"):
            missing.append("Sizes and digests of the data files: they have changed since.")
            return CHANGED, files, {}
        return UNCHANGED, files, json.loads(cache.read_text(encoding="utf-8"))


def _siblings(version: Path, record: dict[str, Any], workspace: Workspace) -> tuple[Registry, str]:
    """Where the versions before and after one are, and their name.

    Beside it; those of a folder that was copied alone, where its pipeline ran.
    """
    beside, name = Registry(version.parent.parent), version.parent.name
    if name == record["name"] and len(beside.versions(name)) > 1:
        return beside, name
    return Registry(workspace.registry), record["name"]


def _attempts(
    paths: PipelinePaths,
    siblings: tuple[Registry, str],
    record: dict[str, Any],
    missing: list[str],
) -> dict[str, list[dict[str, Any]]]:
    registry, name = siblings
    numbers = registry.versions(name)
    if not numbers:
        missing.append(
            f"The runs before it and since that pushed nothing: {registry.root} has no version of "
            f"{name}, so there is nothing that they could lie between."
        )
        return {"attempts": [], "since": []}
    later = [number for number in numbers if number > record["version"]]
    following = registry.record(name, later[0]) if later else None
    return {
        "attempts": _before(paths, siblings, record, missing),
        "since": attempts.between(paths, record, following, _pushing(siblings)),
    }


def _before(
    paths: PipelinePaths,
    siblings: tuple[Registry, str],
    record: dict[str, Any],
    missing: list[str],
) -> list[dict[str, Any]]:
    """The runs between the push of a version's model and of its parent; not those of a rollback.

    Where the parent is gone, since the newest version before it that is there.
    """
    registry, name = siblings
    first = record.get("rollback_of")
    made = registry.record(name, first) if first in registry.versions(name) else record
    parent = _parent(registry, name, record)
    if not parent and record.get("compared_with"):
        older = [number for number in registry.versions(name) if number < made["version"]]
        since = f"{name}@{older[-1]}" if older else "the first run"
        missing.append(
            f"Which runs pushed nothing between {name}@{record['compared_with']} and "
            f"{name}@{made['version']}: the one is gone, so those since {since} are told."
        )
        parent = registry.record(name, older[-1]) if older else {}
    return attempts.between(paths, parent, made, _pushing(siblings))


def _pushing(siblings: tuple[Registry, str]) -> set[str]:
    """The ids of the runs that pushed the versions which are there."""
    registry, name = siblings
    records = (registry.record(name, number) for number in registry.versions(name))
    return {str(record["run"]) for record in records if record.get("run")}


def _parent(registry: Registry, name: str, record: dict[str, Any]) -> dict[str, Any]:
    """The record of the version that one was compared with; empty where it is not there."""
    number = str(record.get("compared_with") or "")
    there = number.isdecimal() and int(number) in registry.versions(name)
    return registry.record(name, int(number)) if there else {}


def _parents(
    paths: PipelinePaths,
    siblings: tuple[Registry, str],
    record: dict[str, Any],
    missing: list[str],
) -> list[dict[str, Any]]:
    """The versions that were in production before, the newest first, and what changed after each.

    Of each also what it ``started`` from and the ``attempts`` before it that pushed nothing. In
    ``changes``, ``a`` is of the parent and ``b`` of the version that was compared with it; in
    ``spans`` is what became of those that either learned from.
    """
    registry, name = siblings
    parents: list[dict[str, Any]] = []
    child = record
    seen: set[str] = set()  # numbers of deleted versions come again, so there might be a circle
    while (number := str(child.get("compared_with") or "")) and number not in seen:
        seen.add(number)
        parent = _parent(registry, name, child)
        told: dict[str, Any] = {"model": f"{name}@{number}"}
        parents.append(told)
        if not parent:
            missing.append(f"What came before {name}@{number}: it is not in the registry any more.")
            break
        told.update({key: parent[key] for key in ("created", "run", "metrics") if key in parent})
        configs = (flattened(side.get("config") or {}) for side in (parent, child))
        told["changes"] = differing(*configs)
        told["same_data"] = parent.get("data_fingerprint") == child.get("data_fingerprint")
        told["started"] = (parent.get("warm_start") or {}).get("start", {}).get("model")
        told["attempts"] = _before(paths, siblings, parent, missing)
        told["spans"] = _changed_spans(parent.get("spans", ()), child.get("spans", ()))
        child = parent
    return parents


def _changed_spans(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    """The spans that are ``new``, ``gone``, in another ``version``, or from now on ``replayed``."""
    known = {one["name"]: one for one in before}
    both = [(known[one["name"]], one) for one in after if one["name"] in known]
    kept = {one["name"] for one in after}
    return {
        "new": [one["name"] for one in after if one["name"] not in known],
        "gone": [name for name in known if name not in kept],
        "version": [new["name"] for old, new in both if new["version"] != old["version"]],
        "replayed": [
            new["name"] for old, new in both if new.get("replayed") and not old.get("replayed")
        ],
    }
