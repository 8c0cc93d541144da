"""Finds the data files of a version, and whether they have changed since."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.components.common.errors import UserError
from regard.components.data.fingerprints import fingerprint
from regard.components.data.sources import find_files
from regard.components.registry import VersionRecord
from regard.pipeline.config import config_from_values
from regard.pipeline.context import resolve_data
from regard.pipeline.lineage.executions import NodeExecution, OutputArtifact
from regard.pipeline.workspace import PipelinePaths

UNCHANGED, CHANGED, MISSING, UNKNOWN = "unchanged", "changed", "missing", "unknown"


@dataclasses.dataclass(frozen=True)
class DataFile:
    """A data file; size and digest are known only while it is unchanged."""

    path: str
    bytes: int | None = None
    sha256: str = ""


@dataclasses.dataclass(frozen=True)
class DataSource:
    """Files that are read together, and the rows of each split that they gave."""

    files: list[DataFile]
    rows: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class DataLineage:
    """The data of a version.

    Attributes:
        fingerprint: the digest of the data; empty if it is not known.
        state: ``unchanged``, ``changed``, ``missing`` or ``unknown``.
        sources: the files.
        rows: the rows of each split.
        spans: the spans, as CorpusGen writes them.
        examples: the artifact of CorpusGen, if it is known.
    """

    fingerprint: str
    state: str
    sources: list[DataSource]
    rows: dict[str, int] = dataclasses.field(default_factory=dict)
    spans: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    examples: OutputArtifact | None = None


def trace_data(
    paths: PipelinePaths,
    record: VersionRecord,
    nodes: Sequence[NodeExecution],
    missing: list[str],
) -> DataLineage:
    """Return the data files of a version with their rows and their state.

    Args:
        paths: the folders of the pipeline.
        record: the version's record.
        nodes: the executions behind it.
        missing: is extended by a sentence on everything that cannot be found.
    """
    outputs = {
        output.key: output for node in nodes if node.node == "CorpusGen" for output in node.outputs
    }
    corpus = _corpus(outputs.get("findings"), missing)
    state, files, digests = _data_state(paths, record, missing)
    known = corpus or record.to_dict()
    # Without the rows of each source, the files that the configuration names.
    sources: list[dict[str, Any]] = corpus["files"] if corpus else []
    if files and not corpus:
        sources = [{"files": files}]
    return DataLineage(
        fingerprint=record.data_fingerprint,
        state=state,
        sources=[
            DataSource([_data_file(path, digests) for path in one["files"]], one.get("rows", {}))
            for one in sources
        ],
        rows=known.get("rows", {}),
        spans=known.get("spans", []),
        examples=outputs.get("examples"),
    )


def _corpus(findings: OutputArtifact | None, missing: list[str]) -> dict[str, Any]:
    """Return the content of CorpusGen's ``corpus.json``."""
    if findings is None:
        return {}
    path = Path(findings.uri) / "corpus.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        missing.append(f"Rows of each data file: {path} is missing.")
        return {}


def _data_state(
    paths: PipelinePaths, record: VersionRecord, missing: list[str]
) -> tuple[str, list[str], dict[str, list[Any]]]:
    """Return the state of the data, the files, and the size and SHA-256 of unchanged ones.

    The files are those of the spans that the version was trained on.
    """
    try:
        spans = record.to_dict().get("spans")
        corpus = resolve_data(config_from_values(record.config), spans=spans)
    except UserError as error:
        missing.append(f"State of the data: {error.where}: {error.message}.")
        return MISSING, [], {}
    except (ValueError, LookupError, TypeError):
        missing.append("State of the data: another version of Regard made the model.")
        return UNKNOWN, [], {}
    groups = [group for groups in find_files(corpus).values() for group in groups]
    files = [path for group in groups for path in group.files]
    with tempfile.TemporaryDirectory() as folder:  # the workspace is not modified
        cache = Path(folder) / "fingerprints.json"
        if (known := paths.root / "fingerprints.json").is_file():
            shutil.copyfile(known, cache)
        if fingerprint(corpus, cache) != record.data_fingerprint:
            missing.append("Sizes and digests of the data files: they have changed since.")
            return CHANGED, files, {}
        return UNCHANGED, files, json.loads(cache.read_text(encoding="utf-8"))


def _data_file(path: str, digests: dict[str, list[Any]]) -> DataFile:
    if path not in digests:
        return DataFile(path)
    size, _, sha256 = digests[path]
    return DataFile(path, size, sha256)
