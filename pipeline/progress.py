"""What is known about a running pipeline: the events of its nodes, added up."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from components import events

WAITING, RUNNING, DONE, CACHED, FAILED = "waiting", "running", "done", "cached", "failed"
STOPPED = "stopped"
ENDED = (DONE, CACHED, FAILED, STOPPED)


@dataclasses.dataclass
class NodeProgress:
    """One node: its state, what it took, and what it tells while it runs.

    A node that was taken from the cache has the seconds that finding it took, and no peak.
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
    properties: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

    def elapsed(self, now: float | None = None) -> float | None:
        """Seconds the node took, or has been running; ``None`` before it starts."""
        if self.seconds is not None or self.started is None:
            return self.seconds
        return max(0.0, (time.time() if now is None else now) - self.started)

    def facts(self) -> dict[str, Any]:
        """State, seconds and peak of memory, as far as they are known."""
        facts = {"state": self.state, "seconds": self.seconds, "peak_bytes": self.peak_bytes}
        return {key: value for key, value in facts.items() if value is not None}


class Progress:
    """All nodes of a run; :meth:`apply` takes in the events as they come."""

    def __init__(self, nodes: Iterable[str]):
        self.nodes = {name: NodeProgress(name) for name in nodes}
        self.starting = ""  # what the worker does before the first node
        self.failure: dict[str, Any] | None = None
        self.notes: list[str] = []
        self.origin: dict[str, Any] = {}  # what the run starts from: its data, its predecessor

    def apply(self, event: dict[str, Any]) -> None:
        """Takes in one event; kinds that it does not know change nothing."""
        take = getattr(self, f"_take_{event.get('kind')}", None)
        if take is not None:
            take(event)

    def running(self) -> NodeProgress | None:
        """The node that runs now, if one does."""
        return next((node for node in self.nodes.values() if node.state == RUNNING), None)

    def stop(self) -> None:
        """The worker is gone: what was running has stopped."""
        for node in self.nodes.values():
            if node.state == RUNNING:
                node.seconds = node.elapsed()
                node.state = STOPPED

    def outputs(self, node: str) -> dict[str, str]:
        """The output URIs of a node that is done or cached, otherwise nothing."""
        found = self.nodes.get(node)
        return found.outputs if found is not None else {}

    def _node(self, event: dict[str, Any]) -> NodeProgress:
        name = str(event["node"])
        return self.nodes.setdefault(name, NodeProgress(name))

    def _take_plan(self, event: dict[str, Any]) -> None:
        # The worker has compiled the graph: these nodes will run, in this order.
        self.nodes = {name: self.nodes.get(name, NodeProgress(name)) for name in event["nodes"]}
        self.starting = ""

    def _take_node(self, event: dict[str, Any]) -> None:
        node = self._node(event)
        node.state = event["state"]
        if node.state == RUNNING:
            node.started, node.seconds = event.get("time", time.time()), None
            node.peak_bytes = None
            return
        node.seconds, node.peak_bytes = event.get("seconds"), event.get("peak_bytes")
        node.text, node.fraction = "", None
        node.outputs = event.get("outputs", {})
        node.properties = event.get("properties", {})
        if node.state == FAILED:
            self.failure = _failure(event)

    def _take_progress(self, event: dict[str, Any]) -> None:
        text = str(event.get("text", ""))
        if not event.get("node"):
            self.starting = text
            return
        node = self._node(event)
        node.text = text
        fraction = event.get("fraction")
        if fraction is not None:  # the bar stays where it was when a text comes without one
            node.fraction = min(1.0, max(0.0, float(fraction)))

    def _take_note(self, event: dict[str, Any]) -> None:
        target = self._node(event).notes if event.get("node") else self.notes
        target.append(str(event.get("text", "")))

    def _take_warning(self, event: dict[str, Any]) -> None:
        if event.get("node"):
            self._node(event).warnings.append(str(event.get("text", "")))
        else:
            self.notes.append(str(event.get("text", "")))

    def _take_origin(self, event: dict[str, Any]) -> None:
        told = ("data_fingerprint", "word_vectors", "parent", "start")
        self.origin = {key: event[key] for key in told if key in event}

    def _take_run(self, event: dict[str, Any]) -> None:
        if event.get("state") == FAILED:
            self.failure = _failure(event)


def read(path: Path, nodes: Iterable[str] = ()) -> Progress:
    """What the events in a file add up to; ``nodes`` are shown before any of them is told of."""
    state = Progress(nodes)
    for event, _ in events.read(path):
        state.apply(event)
    return state


def _failure(event: dict[str, Any]) -> dict[str, Any]:
    keys = ("node", "error", "where", "remedy", "user")
    return {key: event[key] for key in keys if event.get(key) is not None}
