"""Finds the data files of a version, and whether they have changed since."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from regard.components.common.errors import UserError
from regard.components.data.fingerprints import fingerprint
from regard.components.data.sources import find_files
from regard.components.registry.records import VersionRecord
from regard.pipeline.config import config_from_values
from regard.pipeline.context import resolve_data
from regard.pipeline.lineage.executions import NodeExecution
from regard.pipeline.workspace import PipelinePaths

UNCHANGED, CHANGED, MISSING, UNKNOWN = "unchanged", "changed", "missing", "unknown"


class DataSource(TypedDict, total=False):
    """Files that are read together, and the rows of each split that they gave."""

    files: list[str]
    rows: dict[str, int]


@dataclasses.dataclass(frozen=True)
class DataLineage:
    """The data of a version.

    Attributes:
        fingerprint: the digest of the data; empty if it is not known.
        state: ``unchanged``, ``changed``, ``missing`` or ``unknown``.
        sources: the files.
        rows: the rows of each split.
        spans: the spans, as CorpusGen writes them.
    """

    fingerprint: str
    state: str
    sources: list[DataSource]
    rows: dict[str, int] = dataclasses.field(default_factory=dict)
    spans: list[dict[str, Any]] = dataclasses.field(default_factory=list)


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
    corpus = _read_corpus(nodes, missing)
    state, files = _data_state(paths, record, missing)
    content = corpus or record.to_dict()
    # Without the rows of each source, the files that the configuration names.
    sources: list[DataSource] = corpus["files"] if corpus else [{"files": files}] if files else []
    rows, spans = content.get("rows", {}), content.get("spans", [])
    return DataLineage(record.data_fingerprint, state, sources, rows, spans)


def _read_corpus(nodes: Sequence[NodeExecution], missing: list[str]) -> dict[str, Any]:
    """Return the content of CorpusGen's ``corpus.json``; empty if it is not known."""
    outputs = [output for node in nodes if node.node == "CorpusGen" for output in node.outputs]
    path = next((Path(one.uri) / "corpus.json" for one in outputs if one.key == "findings"), None)
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError):
        missing.append(f"Rows of each data file: {path} is missing.")
        return {}


def _data_state(
    paths: PipelinePaths, record: VersionRecord, missing: list[str]
) -> tuple[str, list[str]]:
    """Return the state of the data, and the files of the spans that the version was trained on."""
    try:
        spans = record.to_dict().get("spans")
        corpus = resolve_data(config_from_values(record.config), spans=spans)
    except UserError as error:
        missing.append(f"State of the data: {error.where}: {error.message}.")
        return MISSING, []
    except (ValueError, LookupError, TypeError):
        missing.append("State of the data: another version of Regard made the model.")
        return UNKNOWN, []
    files = [path for groups in find_files(corpus).values() for one in groups for path in one.files]
    with tempfile.TemporaryDirectory() as folder:  # the workspace is not modified
        cache = Path(folder) / "fingerprints.json"
        if (known := paths.root / "fingerprints.json").is_file():
            shutil.copyfile(known, cache)
        is_unchanged = fingerprint(corpus, cache) == record.data_fingerprint
    return UNCHANGED if is_unchanged else CHANGED, files
