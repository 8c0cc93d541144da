"""What a running node tells the outside: one JSON line an event, in a file.

The runner names the file in the environment variable ``REGARD_EVENTS``, which child processes
inherit; where it is unset (a container of a cluster, a unit test) notes and warnings are logged. A
file needs no server, survives a kill, and is read by the live view, by the summary and by tests.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VARIABLE = "REGARD_EVENTS"
_LOG = logging.getLogger("regard")
_START = b'{"time": '  # every event begins so; inside a text the quotes would be escaped


def emit(kind: str, **fields: Any) -> None:
    """Appends one event; ``kind`` is ``node``, ``progress``, ``note`` or ``warning``."""
    path = os.environ.get(VARIABLE)
    if not path:
        if kind in ("note", "warning"):
            # Also a note as a warning: less is not shown unless somebody asked for it.
            _LOG.warning("%s: %s: %s", fields.get("node", "regard"), kind, fields.get("text"))
        return
    line = json.dumps({"time": time.time(), "kind": kind, **fields}, ensure_ascii=False) + "\n"
    # One write of one line in append mode: lines of several processes do not mix.
    with open(path, "ab", buffering=0) as file:
        file.write(line.encode("utf-8"))


def read(path: str | os.PathLike[str], offset: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """Yields the complete events from byte ``offset`` on, each with the offset behind it.

    A line that is no event is passed over: on a full disk only its beginning was written, and
    where the next event landed behind it on the same line, that one is still found.
    """
    if not Path(path).exists():
        return
    with open(path, "rb") as file:
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            event = _event(line[max(0, line.rfind(_START)) :])
            if event is not None:
                yield event, offset


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
