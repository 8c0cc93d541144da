"""Run a compiled pipeline, or a part of it, with TFX's LocalDagRunner or BeamDagRunner."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from regard.core.errors import UserError
from regard.core.suggestions import suggest

if TYPE_CHECKING:
    from tfx.proto.orchestration import pipeline_pb2


def run_nodes(ir: pipeline_pb2.Pipeline, runner: str) -> None:
    """Run every node; raise the error of the first node that fails.

    Args:
        ir: the compiled pipeline.
        runner: ``local`` for one node after another in this process, or ``beam`` for a Beam
            pipeline of the nodes, whose failure is a RuntimeError.
    """
    with _hidden_password(ir):
        _run_nodes(ir, runner)


def _run_nodes(ir: pipeline_pb2.Pipeline, runner: str) -> None:
    if runner == "local":
        from tfx.orchestration.local.local_dag_runner import LocalDagRunner

        LocalDagRunner().run_with_ir(ir)
        return
    from apache_beam.options.pipeline_options import StandardOptions

    # Without arguments, because with Beam arguments this is an older class that cannot run
    # components made from functions.
    from tfx.orchestration.beam.beam_dag_runner import BeamDagRunner

    # For pipelines without a runner, such as the orchestrating one: Beam's own default tries to
    # download another runner, Prism, from the network.
    StandardOptions.DEFAULT_RUNNER = "FnApiRunner"
    BeamDagRunner().run_with_ir(ir)


@contextlib.contextmanager
def _hidden_password(ir: pipeline_pb2.Pipeline) -> Iterator[None]:
    """Remove the password of a MySQL database from the pipeline, which TFX's runners log.

    TFX gets it when it connects: both runners look up ``metadata.Metadata`` when a node starts.
    """
    from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig
    from tfx.orchestration import metadata
    from tfx.proto.orchestration.pipeline_pb2 import IntermediateDeploymentConfig

    deployment, config = IntermediateDeploymentConfig(), ConnectionConfig()
    ir.deployment_config.Unpack(deployment)
    deployment.metadata_connection_config.Unpack(config)
    password = config.mysql.password
    if not password:
        yield
        return
    config.mysql.ClearField("password")
    deployment.metadata_connection_config.Pack(config)
    ir.deployment_config.Pack(deployment)
    original = metadata.Metadata

    def connect(connection_config: ConnectionConfig) -> metadata.Metadata:
        complete = ConnectionConfig()
        complete.CopyFrom(connection_config)
        complete.mysql.password = password
        return original(complete)

    metadata.Metadata = connect
    try:
        yield
    finally:
        metadata.Metadata = original


def check_node(name: str, nodes: Iterable[str], option: str) -> str:
    """Return the node with a name, ignoring case.

    Raises:
        UserError: No node has this name.
    """
    choices = list(nodes)
    by_lower = {node.lower(): node for node in choices}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    remedy = f"{suggest(name, choices)}."
    raise UserError(f"Unknown node {name!r}.", option, remedy)


def node_ids(ir: pipeline_pb2.Pipeline) -> list[str]:
    """Return the ids of a compiled pipeline's nodes, in execution order."""
    return [node.pipeline_node.node_info.id for node in ir.nodes]


def remove_unneeded_nodes(ir: pipeline_pb2.Pipeline, last: str) -> None:
    """Remove, in place, every node except ``last`` and its ancestors."""
    needed = {last}
    for node in reversed(ir.nodes):  # in topological order
        if node.pipeline_node.node_info.id in needed:
            needed.update(node.pipeline_node.upstream_nodes)
    for index in reversed(range(len(ir.nodes))):
        inner = ir.nodes[index].pipeline_node
        if inner.node_info.id not in needed:
            del ir.nodes[index]
            continue
        downstream = [name for name in inner.downstream_nodes if name in needed]
        del inner.downstream_nodes[:]
        inner.downstream_nodes.extend(downstream)


def disable_cache_from(ir: pipeline_pb2.Pipeline, first: str) -> None:
    """Disable the cache, in place, for ``first`` and its descendants."""
    repeated = {first}
    for node in ir.nodes:
        inner = node.pipeline_node
        if inner.node_info.id in repeated or repeated.intersection(inner.upstream_nodes):
            repeated.add(inner.node_info.id)
            inner.execution_options.caching_options.enable_cache = False
