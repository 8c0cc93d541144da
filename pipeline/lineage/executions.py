"""Finds the executions and artifacts behind a pushed model in ML Metadata."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from regard.components.common.errors import UserError
from regard.pipeline.config.config import NODES

if TYPE_CHECKING:
    from ml_metadata import MetadataStore
    from ml_metadata.proto import metadata_store_pb2

_RUN, _NODE = "pipeline_run", "node"  # context types of TFX


@dataclasses.dataclass(frozen=True)
class OutputArtifact:
    """An artifact that a node wrote.

    Attributes:
        key: the output's key.
        uri: the folder.
        exists: whether the folder exists.
    """

    key: str
    uri: str
    exists: bool


@dataclasses.dataclass(frozen=True)
class NodeExecution:
    """An execution of a node.

    Attributes:
        node: the node's name.
        execution: the id.
        run: the run that executed it.
        cached: whether the pushing run took its result from the cache.
        seconds: the duration.
        outputs: the artifacts that it wrote.
    """

    node: str
    execution: int
    run: str
    cached: bool
    seconds: float
    outputs: list[OutputArtifact]


def trace_executions(metadata: Path, identifier: str) -> tuple[str, list[NodeExecution]] | None:
    """Return the run that pushed a model, with the executions from the Pusher back to the data.

    For a node that the run took from the cache, the older execution that did the work is
    returned. Nothing is written, and a run may be active.

    Args:
        metadata: the SQLite file of the pipeline.
        identifier: the ``mlmd_uuid`` that the Pusher gave the model.

    Returns:
        None if the file does not contain the model.

    Raises:
        UserError: the file cannot be read.
    """
    store = _open(metadata)
    pushed = [
        artifact.id
        for artifact in store.get_artifacts_by_type("PushedModel")
        if identifier and artifact.custom_properties["mlmd_uuid"].string_value == identifier
    ]
    if not pushed:
        return None
    first = min(pushed)  # later runs found the model pushed already
    run = _context(store, _producers(store, [first])[first].id, _RUN)
    ids = [execution.id for execution in store.get_executions_by_context(run.id)]
    events = store.get_events_by_execution_ids(ids)
    outputs = [event.artifact_id for event in events if event.type == event.OUTPUT]
    executions = {one.id: one for one in _producers(store, outputs).values()}.values()
    nodes = [_node(store, execution, run.name) for execution in executions]
    order = {name: index for index, name in enumerate(reversed(NODES))}
    return run.name, sorted(nodes, key=lambda node: order.get(node.node, len(order)))


def _open(metadata: Path) -> MetadataStore:
    from ml_metadata import MetadataStore
    from ml_metadata.proto import metadata_store_pb2

    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(metadata)
    config.sqlite.connection_mode = metadata_store_pb2.SqliteMetadataSourceConfig.READONLY
    try:
        return MetadataStore(config)
    except RuntimeError as error:
        reason = str(error).partition(" query:")[0]
        raise UserError(f"ML Metadata cannot be read: {reason}", where=str(metadata)) from error


def _producers(
    store: MetadataStore, artifacts: Iterable[int]
) -> dict[int, metadata_store_pb2.Execution]:
    """Return the execution that produced each artifact, not those that took it from the cache."""
    events = [e for e in store.get_events_by_artifact_ids(set(artifacts)) if e.type == e.OUTPUT]
    complete = {
        execution.id: execution
        for execution in store.get_executions_by_id({event.execution_id for event in events})
        if execution.last_known_state == execution.COMPLETE
    }
    return {e.artifact_id: complete[e.execution_id] for e in events if e.execution_id in complete}


def _context(store: MetadataStore, execution: int, kind: str) -> metadata_store_pb2.Context:
    return next(c for c in store.get_contexts_by_execution(execution) if c.type == kind)


def _node(
    store: MetadataStore, execution: metadata_store_pb2.Execution, pushing_run: str
) -> NodeExecution:
    events = store.get_events_by_execution_ids([execution.id])
    keys = {e.artifact_id: e.path.steps[0].key for e in events if e.type == e.OUTPUT}
    run = _context(store, execution.id, _RUN).name
    milliseconds = execution.last_update_time_since_epoch - execution.create_time_since_epoch
    return NodeExecution(
        node=_context(store, execution.id, _NODE).name.rpartition(".")[2],
        execution=execution.id,
        run=run,
        cached=run != pushing_run,
        seconds=milliseconds / 1000,
        outputs=[
            OutputArtifact(keys[artifact.id], artifact.uri, Path(artifact.uri).exists())
            for artifact in store.get_artifacts_by_id(list(keys))
        ],
    )
