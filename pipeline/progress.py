"""The progress of a running pipeline, aggregated from the events of its nodes."""

import dataclasses
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict, cast

from regard.core import events
from regard.core.events import Event, Failure, Origin

WAITING, RUNNING, DONE, CACHED, FAILED = "waiting", "running", "done", "cached", "failed"
STOPPED = "stopped"


class RecordedNode(TypedDict, total=False):
    """State, duration and peak memory of a node, as they are recorded."""

    state: str
    seconds: float
    peak_bytes: int


@dataclasses.dataclass
class NodeProgress:
    """One node: its state, its cost, and its messages.

    The duration of a cached node is that of the cache lookup; its peak memory is unknown.
    """

    name: str
    state: str = WAITING
    started: float | None = None
    seconds: float | None = None
    peak_bytes: int | None = None
    text: str = ""
    fraction: float | None = None
    notes: list[str] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    outputs: dict[str, str] = dataclasses.field(default_factory=dict)
    properties: dict[str, dict[str, int | float | str]] = dataclasses.field(default_factory=dict)
    digests: dict[str, str] = dataclasses.field(default_factory=dict)

    def elapsed(self, now: float | None = None) -> float | None:
        """Seconds from start to end, or until now; None before the start."""
        if self.seconds is not None or self.started is None:
            return self.seconds
        return max(0.0, (time.time() if now is None else now) - self.started)

    def facts(self) -> RecordedNode:
        """State, seconds and peak memory, without unknown values."""
        facts = {"state": self.state, "seconds": self.seconds, "peak_bytes": self.peak_bytes}
        return cast(RecordedNode, {key: fact for key, fact in facts.items() if fact is not None})


class Progress:
    """All nodes of a run; :meth:`apply` updates it with each event."""

    def __init__(self, nodes: Iterable[str]):
        self.nodes = {name: NodeProgress(name) for name in nodes}
        self.startup_text = ""  # the activity of the worker before the first node
        self.failure: Failure | None = None
        self.notes: list[str] = []
        self.origin: Origin = {}

    def apply(self, event: Event) -> None:
        """Update the progress with one event; unknown kinds are ignored."""
        handler = getattr(self, f"_apply_{event.get('kind')}", None)
        if handler is not None:
            handler(event)

    def stop(self) -> None:
        """Mark running nodes as stopped, because the worker has ended."""
        for node in self.nodes.values():
            if node.state == RUNNING:
                node.seconds = node.elapsed()
                node.state = STOPPED

    def outputs(self, node: str) -> dict[str, str]:
        """The output URIs of a node that is done or cached, otherwise nothing."""
        return self.nodes[node].outputs if node in self.nodes else {}

    def output_folder(self, node: str, key: str) -> Path:
        """The folder of an output; it has no files if the node has no such output."""
        return Path(self.outputs(node).get(key, os.devnull))

    def pushed_model(self) -> dict[str, int | float | str]:
        """The properties of the Pusher's output; empty if the node has not ended."""
        pusher = self.nodes.get("Pusher")
        return pusher.properties.get("pushed_model", {}) if pusher else {}

    def _node(self, event: Event) -> NodeProgress:
        name = str(event["node"])
        return self.nodes.setdefault(name, NodeProgress(name))

    def _apply_plan(self, event: Event) -> None:
        # The worker has compiled the graph: these nodes will run, in this order.
        self.nodes = {name: self.nodes.get(name, NodeProgress(name)) for name in event["nodes"]}
        self.startup_text = ""

    def _apply_node(self, event: Event) -> None:
        node = self._node(event)
        node.state = event["state"]
        if node.state == RUNNING:
            node.started = event.get("time", time.time())
            node.seconds = node.peak_bytes = None
            return
        node.seconds, node.peak_bytes = event.get("seconds"), event.get("peak_bytes")
        node.text, node.fraction = "", None
        node.outputs = event.get("outputs", {})
        node.properties, node.digests = event.get("properties", {}), event.get("digests", {})
        if node.state == FAILED:
            self._apply_run(event)

    def _apply_progress(self, event: Event) -> None:
        text, fraction = event.get("text", ""), event.get("fraction")
        if not event.get("node"):
            self.startup_text = text
            return
        node = self._node(event)
        node.text = text
        if fraction is not None:  # without a fraction, the bar stays as it is
            node.fraction = min(1.0, max(0.0, fraction))

    def _apply_note(self, event: Event) -> None:
        notes = self._node(event).notes if event.get("node") else self.notes
        notes.append(event.get("text", ""))

    def _apply_warning(self, event: Event) -> None:
        warnings = self._node(event).warnings if event.get("node") else self.notes
        warnings.append(event.get("text", ""))

    def _apply_origin(self, event: Event) -> None:
        keys = Origin.__annotations__
        self.origin = cast(Origin, {key: v for key, v in event.items() if key in keys})

    def _apply_run(self, event: Event) -> None:
        known = {key: v for key, v in event.items() if key in Failure.__annotations__}
        self.failure = cast(Failure, {key: v for key, v in known.items() if v is not None})


def read(path: Path, nodes: Iterable[str] = ()) -> Progress:
    """Aggregate the events of a file; ``nodes`` are listed even without events."""
    state = Progress(nodes)
    for event, _ in events.read(path):
        state.apply(event)
    return state
