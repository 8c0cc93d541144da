"""Finds the executions and artifacts behind a pushed model in ML Metadata."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from regard.components.common.errors import UserError
from regard.pipeline.config.nodes import NODES

if TYPE_CHECKING:
    from ml_metadata import MetadataStore
    from ml_metadata.proto import metadata_store_pb2

_RUN, _NODE = "pipeline_run", "node"  # context types of TFX
_SIMPLE_TYPES = ("int_value", "double_value", "string_value")
_INTERNAL_PROPERTIES = ("is_external", "payload_format", "stats_dashboard_link", "tfx_version")


@dataclasses.dataclass(frozen=True)
class InputArtifact:
    """The id of an artifact that a node read, under its input's key."""

    key: str
    artifact: int


@dataclasses.dataclass(frozen=True)
class OutputArtifact:
    """An artifact that a node wrote.

    Attributes:
        key: the output's key.
        artifact: the id.
        type: the type's name.
        uri: the folder.
        exists: whether the folder exists.
        properties: the properties and custom properties.
    """

    key: str
    artifact: int
    type: str
    uri: str
    exists: bool
    properties: dict[str, int | float | str]


@dataclasses.dataclass(frozen=True)
class NodeExecution:
    """An execution of a node.

    Attributes:
        node: the node's name.
        execution: the id.
        run: the run that executed it.
        cached: whether the pushing run took its result from the cache.
        started: the time in seconds since the epoch.
        seconds: the duration.
        inputs: the artifacts that it read.
        outputs: the artifacts that it wrote.
    """

    node: str
    execution: int
    run: str
    cached: bool
    started: float
    seconds: float
    inputs: list[InputArtifact]
    outputs: list[OutputArtifact]


@dataclasses.dataclass(frozen=True)
class PushingRun:
    """The run that pushed a model, and its executions from the Pusher back to the data."""

    run: str
    nodes: list[NodeExecution]


def trace_executions(metadata: Path, identifier: str) -> PushingRun | None:
    """Return the run that pushed a model, with the executions behind it.

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
        artifact
        for artifact in store.get_artifacts_by_type("PushedModel")
        if identifier and artifact.custom_properties["mlmd_uuid"].string_value == identifier
    ]
    if not pushed:
        return None
    first = min(artifact.id for artifact in pushed)  # later runs found the model pushed already
    run = _context(store, _producers(store, [first])[first].id, _RUN)
    ids = [execution.id for execution in store.get_executions_by_context(run.id)]
    events = store.get_events_by_execution_ids(ids)
    outputs = [event.artifact_id for event in events if _is_output(event)]
    executions = {one.id: one for one in _producers(store, outputs).values()}.values()
    nodes = [_node(store, execution, run.name) for execution in executions]
    order = {name: index for index, name in enumerate(reversed(NODES))}
    nodes.sort(key=lambda node: order.get(node.node, len(order)))
    return PushingRun(run.name, nodes)


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


def _is_output(event: metadata_store_pb2.Event) -> bool:
    return event.type == event.OUTPUT


def _producers(
    store: MetadataStore, artifacts: Iterable[int]
) -> dict[int, metadata_store_pb2.Execution]:
    """Return the execution that produced each artifact, not those that took it from the cache."""
    events = [
        event for event in store.get_events_by_artifact_ids(set(artifacts)) if _is_output(event)
    ]
    complete = {
        execution.id: execution
        for execution in store.get_executions_by_id({event.execution_id for event in events})
        if execution.last_known_state == execution.COMPLETE
    }
    return {
        event.artifact_id: complete[event.execution_id]
        for event in events
        if event.execution_id in complete
    }


def _context(store: MetadataStore, execution: int, kind: str) -> metadata_store_pb2.Context:
    return next(c for c in store.get_contexts_by_execution(execution) if c.type == kind)


def _node(
    store: MetadataStore, execution: metadata_store_pb2.Execution, pushing_run: str
) -> NodeExecution:
    events = store.get_events_by_execution_ids([execution.id])
    keys = {event.artifact_id: event.path.steps[0].key for event in events}
    artifacts = {artifact.id: artifact for artifact in store.get_artifacts_by_id(list(keys))}
    run = _context(store, execution.id, _RUN).name
    milliseconds = execution.last_update_time_since_epoch - execution.create_time_since_epoch
    return NodeExecution(
        node=_context(store, execution.id, _NODE).name.rpartition(".")[2],
        execution=execution.id,
        run=run,
        cached=run != pushing_run,
        started=execution.create_time_since_epoch / 1000,
        seconds=milliseconds / 1000,
        inputs=[
            InputArtifact(keys[event.artifact_id], event.artifact_id)
            for event in events
            if not _is_output(event)
        ],
        outputs=[
            _output(keys[event.artifact_id], artifacts[event.artifact_id])
            for event in events
            if _is_output(event)
        ],
    )


def _output(key: str, artifact: metadata_store_pb2.Artifact) -> OutputArtifact:
    properties = {
        name: getattr(value, kind)
        for name, value in (*artifact.properties.items(), *artifact.custom_properties.items())
        if name not in _INTERNAL_PROPERTIES and (kind := value.WhichOneof("value")) in _SIMPLE_TYPES
    }
    exists = Path(artifact.uri).exists()
    return OutputArtifact(key, artifact.id, artifact.type, artifact.uri, exists, properties)
