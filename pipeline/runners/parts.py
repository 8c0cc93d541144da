"""Parts of the graph: what ``--from`` and ``--to`` change in a compiled pipeline."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from components.errors import UserError
from pipeline.nodes import NODES

if TYPE_CHECKING:
    from tfx.proto.orchestration import pipeline_pb2


def check_node(given: str, nodes: Iterable[str], option: str) -> str:
    """The node of that name, whatever its case.

    Raises:
        UserError: there is none; names the closest and all choices.
    """
    choices = list(nodes)
    by_lower = {name.lower(): name for name in choices}
    if given.lower() in by_lower:
        return by_lower[given.lower()]
    close = difflib.get_close_matches(given.lower(), by_lower, n=1)
    hint = f"; did you mean {by_lower[close[0]]}?" if close else ""
    raise UserError(
        f"there is no node {given!r}{hint}",
        where=option,
        remedy=f"The nodes are {', '.join(choices)}.",
    )


def node_ids(ir: pipeline_pb2.Pipeline) -> list[str]:
    """The ids of a compiled pipeline's nodes, in the order in which they run."""
    return [node.pipeline_node.node_info.id for node in ir.nodes]


def keep_up_to(ir: pipeline_pb2.Pipeline, last: str) -> None:
    """Takes out, in place, every node that is neither ``last`` nor needed for it."""
    kept = {last}
    for node in reversed(ir.nodes):  # topological order: each comes after what it needs
        if node.pipeline_node.node_info.id in kept:
            kept.update(node.pipeline_node.upstream_nodes)
    for index in reversed(range(len(ir.nodes))):
        inner = ir.nodes[index].pipeline_node
        if inner.node_info.id not in kept:
            del ir.nodes[index]
            continue
        downstream = [name for name in inner.downstream_nodes if name in kept]
        del inner.downstream_nodes[:]
        inner.downstream_nodes.extend(downstream)


def runs_again(node: str, first: str) -> bool:
    """Whether ``--from first`` makes ``node`` run again; false where there is no such node."""
    lower = [name.lower() for name in NODES]
    return first.lower() in lower[: NODES.index(node) + 1]


def run_again_from(ir: pipeline_pb2.Pipeline, first: str) -> None:
    """Makes ``first`` and all that depends on it run, in place, instead of being cached."""
    renewed = {first}
    for node in ir.nodes:
        inner = node.pipeline_node
        if inner.node_info.id in renewed or renewed.intersection(inner.upstream_nodes):
            renewed.add(inner.node_info.id)
            inner.execution_options.caching_options.enable_cache = False
