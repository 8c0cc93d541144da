"""What ML Metadata keeps about a pushed model: which executions made it, and of what."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.errors import UserError
from pipeline.nodes import NODES

if TYPE_CHECKING:
    from ml_metadata import MetadataStore
    from ml_metadata.proto import metadata_store_pb2

_RUN, _NODE = "pipeline_run", "node"  # TFX's names for the types of contexts
_PLAIN = ("int_value", "double_value", "string_value")
_NOISE = ("is_external", "payload_format", "stats_dashboard_link", "tfx_version")


def behind(metadata: Path, identifier: str) -> dict[str, Any] | None:
    """The ``run`` that pushed a model, and its ``nodes`` from the Pusher back to the data.

    A node that the run took from the cache is told as the older execution that did the work,
    with the run in which it did. Nothing is written; a run may be going on.

    Args:
        metadata: the SQLite file of the pipeline.
        identifier: the ``mlmd_uuid`` that the Pusher gave the model.

    Returns:
        None where the file does not know the model.

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
    first = min(artifact.id for artifact in pushed)  # later ones found the model pushed already
    makers = _makers(store, [first])
    run = _context(store, makers[first].id, _RUN)
    ids = [execution.id for execution in store.get_executions_by_context(run.id)]
    outputs = [event.artifact_id for event in store.get_events_by_execution_ids(ids) if _out(event)]
    executions = {made.id: made for made in _makers(store, outputs).values()}.values()
    nodes = [_node(store, execution, run.name) for execution in executions]
    order = {name: place for place, name in enumerate(reversed(NODES))}
    nodes.sort(key=lambda node: order.get(node["node"], len(order)))
    return {"run": run.name, "nodes": nodes}


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


def _out(event: metadata_store_pb2.Event) -> bool:
    return event.type == event.OUTPUT


def _makers(
    store: MetadataStore, artifacts: Iterable[int]
) -> dict[int, metadata_store_pb2.Execution]:
    """The execution that made each artifact; those that took it from the cache did not."""
    events = [event for event in store.get_events_by_artifact_ids(set(artifacts)) if _out(event)]
    found = store.get_executions_by_id({event.execution_id for event in events})
    complete = {
        execution.id: execution
        for execution in found
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
    store: MetadataStore, execution: metadata_store_pb2.Execution, run: str
) -> dict[str, Any]:
    events = store.get_events_by_execution_ids([execution.id])
    keys = {event.artifact_id: event.path.steps[0].key for event in events}
    artifacts = {a.id: a for a in store.get_artifacts_by_id(list(keys))}
    made_in = _context(store, execution.id, _RUN).name
    milliseconds = execution.last_update_time_since_epoch - execution.create_time_since_epoch
    return {
        "node": _context(store, execution.id, _NODE).name.rpartition(".")[2],
        "execution": execution.id,
        "run": made_in,
        "cached": made_in != run,
        "started": execution.create_time_since_epoch / 1000,
        "seconds": milliseconds / 1000,
        "inputs": [
            {"key": keys[event.artifact_id], "artifact": event.artifact_id}
            for event in events
            if not _out(event)
        ],
        "outputs": [
            _artifact(keys[event.artifact_id], artifacts[event.artifact_id])
            for event in events
            if _out(event)
        ],
    }


def _artifact(key: str, artifact: metadata_store_pb2.Artifact) -> dict[str, Any]:
    properties = {
        name: getattr(value, kind)
        for name, value in (*artifact.properties.items(), *artifact.custom_properties.items())
        if name not in _NOISE and (kind := value.WhichOneof("value")) in _PLAIN
    }
    return {
        "key": key,
        "artifact": artifact.id,
        "type": artifact.type,
        "uri": artifact.uri,
        "there": Path(artifact.uri).exists(),
        "properties": properties,
    }
