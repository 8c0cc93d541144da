"""The operations that a TensorFlow Serving release can run.

A server contains TensorFlow's own operations and those of one release of TensorFlow Text; it cannot
load a model with another operation. Server 2.x is built with TensorFlow 2.x. ``supported_ops.json``
lists, by the first minor version of the server that has them, the operations of TensorFlow Text
(from the servers' ``model_servers/BUILD`` and ``workspace.bzl``: 2.5.0 in server 2.6.2, 2.12.1 in
2.14 to 2.19, 2.20.0 in 2.20) and the operations that TensorFlow added after 2.6 (from the
``gen_*.py`` files of the wheels 2.11, 2.14, 2.17, 2.19, 2.20 and 2.21). Between two known releases
the older list applies, because operations are only ever added.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from regard.serving.contract import MODEL_FILE
from regard.serving.protobuf import message_class
from regard.serving.session import operations

_OLDEST_MINOR, _NEWEST_MINOR = 6, 20


@cache
def _load(library: str) -> Mapping[int, frozenset[str]]:
    """Return the added operations of a library by minor version."""
    text = Path(__file__).with_name("supported_ops.json").read_text(encoding="utf-8")
    return {int(minor): frozenset(ops) for minor, ops in json.loads(text)[library].items()}


def text_ops(server: str) -> frozenset[str]:
    """Return the TensorFlow Text operations of a server version such as ``2.19`` or ``2.6.2``.

    Raises:
        ValueError: the operations of the version are not known.
    """
    minor = _minor(server)
    known = (ops for since, ops in _load("tensorflow_text").items() if since <= minor)
    return frozenset().union(*known)


def later_core_ops(server: str) -> frozenset[str]:
    """Return TensorFlow's own operations that are newer than a server version.

    Raises:
        ValueError: the operations of the version are not known.
    """
    minor = _minor(server)
    later = (ops for since, ops in _load("tensorflow").items() if since > minor)
    return frozenset().union(*later)


def used_ops(saved_model: str | Path) -> dict[str, str]:
    """Return the operations of a SavedModel, in its graphs and function libraries.

    Returns:
        For each operation the name of one node that uses it.
    """
    content = (Path(saved_model) / MODEL_FILE).read_bytes()
    proto = message_class("SavedModelOperations").FromString(content)
    ops: dict[str, str] = {}
    functions: set[str] = set()
    for meta_graph in proto.meta_graphs:
        graph = meta_graph.graph_def
        ops |= {node.op: node.name for node in graph.node}
        for function in graph.library.function:
            functions.add(function.signature.name)
            ops |= {node.op: node.name for node in function.node_def}
    # A node can name a function of the library as its operation.
    return {op: node for op, node in ops.items() if op not in functions}


def core_ops(names: Iterable[str]) -> set[str]:
    """Return the operations that TensorFlow has in this process.

    Before the first SavedModel is loaded, these are TensorFlow's own, without TensorFlow Text.
    """
    return operations() & set(names)


def unsupported(ops: Iterable[str], core: Iterable[str], server: str) -> list[str]:
    """Return the operations that a server version cannot run, sorted.

    Args:
        ops: the operations of a model.
        core: the operations of the installed TensorFlow; those of TensorFlow Text are ignored.
        server: the version.

    Raises:
        ValueError: the operations of the version are not known.
    """
    all_text_ops = frozenset().union(*_load("tensorflow_text").values())
    core_of_server = set(core) - later_core_ops(server) - all_text_ops
    return sorted(set(ops) - core_of_server - text_ops(server))


def _minor(server: str) -> int:
    major, _, rest = server.partition(".")
    minor = rest.partition(".")[0]
    if major == "2" and minor.isdecimal() and _OLDEST_MINOR <= int(minor) <= _NEWEST_MINOR:
        return int(minor)
    raise ValueError(
        f"The operations of TensorFlow Serving {server!r} are not known."
        f" Use 2.{_OLDEST_MINOR} to 2.{_NEWEST_MINOR}."
    )
