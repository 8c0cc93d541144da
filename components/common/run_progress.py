"""The progress of a run, aggregated from the events of its nodes."""

import os
from collections.abc import Iterable
from pathlib import Path

from regard.components.common.run_record import FAILED, RUNNING, STOPPED, Node, Origin
from regard.core import events
from regard.core.errors import Failure
from regard.core.events import Event


class Progress:
    """All nodes of a run; :meth:`apply` updates it with each event."""

    def __init__(self, nodes: Iterable[str]):
        self.nodes = {name: Node(name=name) for name in nodes}
        self.started: float | None = None  # the time of the first event
        self.startup_text = ""  # the activity of the worker before the first node
        self.failure: Failure | None = None
        self.notes: list[str] = []
        self.origin = Origin()

    def apply(self, event: Event) -> None:
        """Update the progress with one event; unknown kinds are ignored."""
        if self.started is None:
            self.started = event.get("time")
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

    def _node(self, event: Event) -> Node:
        name = str(event["node"])
        return self.nodes.setdefault(name, Node(name=name))

    def _apply_plan(self, event: Event) -> None:
        # The worker has compiled the graph: these nodes will run, in this order.
        self.nodes = {name: self.nodes.get(name, Node(name=name)) for name in event["nodes"]}
        self.startup_text = ""

    def _apply_node(self, event: Event) -> None:
        node = self._node(event)
        node.apply_event(event)
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

    def _apply_result(self, event: Event) -> None:
        self._node(event).results.append(event.get("text", ""))

    def _apply_warning(self, event: Event) -> None:
        warnings = self._node(event).warnings if event.get("node") else self.notes
        warnings.append(event.get("text", ""))

    def _apply_origin(self, event: Event) -> None:
        self.origin = Origin.from_dict(event)

    def _apply_run(self, event: Event) -> None:
        self.failure = Failure.from_dict(event)


def read(path: Path, nodes: Iterable[str] = ()) -> Progress:
    """Aggregate the events of a file; ``nodes`` are listed even without events."""
    state = Progress(nodes)
    for event, _ in events.read(path):
        state.apply(event)
    return state
