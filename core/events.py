"""Events of running nodes: one JSON line each, appended to a file.

The runner names the file in the environment variable ``REGARD_EVENTS``, which child processes
inherit. If it is unset (in a container of a cluster, in a unit test), notes, results and warnings
are logged. A file needs no server, survives a kill, and is read by the live
view, the summary and tests.
"""

import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict, cast

VARIABLE = "REGARD_EVENTS"
_LOG = logging.getLogger("regard")
_START = b'{"time": '  # inside a text, the quotes would be escaped


class Event(TypedDict, total=False):
    """One event. Which keys it has depends on its kind.

    ``plan`` has the nodes that will run; ``node`` the state of a node, and at its end its cost,
    output URIs with their properties and digests, or its failure; ``progress`` a text and a
    fraction; ``note`` and ``warning`` a text; ``result`` a text that the summary of the run
    contains, too; ``origin`` what the run starts from; ``run`` a failure outside the nodes.
    """

    time: float
    kind: str
    node: str
    state: str
    text: str
    fraction: float | None
    nodes: list[str]


def emit(kind: str, **fields: object) -> None:
    """Append one event; see `Event` for its kinds."""
    path = os.environ.get(VARIABLE)
    if not path:
        if kind in ("note", "result", "warning"):
            # Notes are logged as warnings, too: lower levels are hidden by default.
            _LOG.warning("%s: %s: %s", fields.get("node", "regard"), kind, fields.get("text"))
        return
    write(path, kind, **fields)


def write(path: str | os.PathLike[str], kind: str, **fields: object) -> None:
    """Append one event to a file."""
    line = json.dumps({"time": time.time(), "kind": kind, **fields}, ensure_ascii=False) + "\n"
    # A single write in append mode: lines of several processes do not mix.
    with open(path, "ab", buffering=0) as file:
        file.write(line.encode("utf-8"))


def emit_if_possible(kind: str, **fields: object) -> None:
    """Append one event; a full disk must not hide the error that it reports."""
    try:
        emit(kind, **fields)
    except OSError:
        _LOG.exception("Cannot write the event: %s", fields)


def read(path: str | os.PathLike[str], offset: int = 0) -> Iterator[tuple[Event, int]]:
    """Yield the complete events after byte ``offset``, each with the offset of its end.

    Malformed lines are skipped. On a full disk, only the beginning of a line may have been written;
    an event that follows it on the same line is still read.
    """
    if not Path(path).exists():
        return
    with open(path, "rb") as file:
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            event = _parse(line[max(0, line.rfind(_START)) :])
            if event is not None:
                yield event, offset


def _parse(line: bytes) -> Event | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return cast(Event, content) if isinstance(content, dict) else None
