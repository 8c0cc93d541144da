"""The executions of nodes behind a run, with their ids in ML Metadata."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from regard.components.common.run_record import CACHED, Node
from regard.core.errors import UserError
from regard.pipeline.metadata_store import store_of_run
from regard.pipeline.runs import store
from regard.pipeline.runs.store import Run


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
        run: the run that executed it; empty if `regard clean` removed that run.
        cached: whether the pushing run took its result from the cache.
        seconds: the duration.
        outputs: the artifacts that it wrote.
        execution: the id of the execution in ML Metadata; None if it is not known.
        context: the id of the run's context there; None if it is not known.
    """

    node: str
    run: str
    cached: bool
    seconds: float
    outputs: list[OutputArtifact]
    execution: int | None = None
    context: int | None = None


def trace_executions(run: Run, missing: list[str]) -> tuple[list[NodeExecution], dict[str, int]]:
    """Return the nodes of a run, from the Pusher back to the data, and the ids of contexts.

    Args:
        run: the run.
        missing: is extended by a sentence on everything that cannot be found.

    Returns:
        The nodes, and the ids of the contexts of this and the other runs, as far as ML Metadata has
        them, by the ids of the runs.
    """
    nodes = run.progress().nodes if run.events.is_file() else {}
    if not nodes:
        remedy = "If the model was made elsewhere, set REGARD_HOME to its workspace."
        missing.append(f"Nodes: there are no events at {run.events}. {remedy}")
        return [], {}
    originals = store.original_nodes(run, nodes)
    contexts = _context_ids(run, {run.id, *(one.id for one, _ in originals.values())}, missing)
    ended = [node for node in reversed(nodes.values()) if node.outputs]
    return [_trace_node(node, originals.get(node.name), contexts) for node in ended], contexts


def _trace_node(
    node: Node, original: tuple[Run, Node] | None, contexts: dict[str, int]
) -> NodeExecution:
    run = original[0].id if original else ""
    return NodeExecution(
        node=node.name,
        run=run,
        cached=node.state == CACHED,
        seconds=(original[1].seconds if original else None) or 0.0,
        outputs=[OutputArtifact(key, uri, Path(uri).exists()) for key, uri in node.outputs.items()],
        execution=_execution_id(node),
        context=contexts.get(run),
    )


def _execution_id(node: Node) -> int | None:
    """Return the id of the execution that wrote the outputs of a node: the name of each folder."""
    names = {Path(uri).name for uri in node.outputs.values()}
    return int(names.pop()) if len(names) == 1 and all(map(str.isdecimal, names)) else None


def _context_ids(run: Run, run_ids: Iterable[str], missing: list[str]) -> dict[str, int]:
    try:
        return store_of_run(run).context_ids(run_ids)
    except UserError as error:
        missing.append(f"Ids of ML Metadata: {error.where}: {error.message}")
        return {}
