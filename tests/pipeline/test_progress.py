from __future__ import annotations

from regard.components.common import events
from regard.pipeline import progress
from regard.pipeline.progress import Progress


def test_failure_keeps_reason_place_and_remedy():
    state = Progress(["Trainer"])
    state.apply({"kind": "node", "node": "Trainer", "state": "running", "time": 1.0})
    state.apply(
        {
            "kind": "node",
            "node": "Trainer",
            "state": "failed",
            "error": "e",
            "where": "w",
            "user": True,
        }
    )
    assert state.failure == {"node": "Trainer", "error": "e", "where": "w", "user": True}


def test_failure_outside_of_the_nodes():
    state = Progress([])
    state.apply({"kind": "run", "state": "failed", "error": "e"})
    assert state.failure == {"error": "e"}


def test_stop_ends_only_what_runs():
    state = Progress(["A", "B"])
    state.apply({"kind": "node", "node": "A", "state": "running", "time": 1.0})
    state.stop()
    assert [node.state for node in state.nodes.values()] == ["stopped", "waiting"]


def test_unknown_events_and_nodes_do_no_harm():
    state = Progress(["A"])
    state.apply({"kind": "later", "node": "A"})
    state.apply({"kind": "node", "node": "New", "state": "running", "time": 1.0})
    assert state.nodes["New"].state == "running"


def test_fraction_is_kept_between_0_and_1():
    state = Progress(["A"])
    state.apply({"kind": "progress", "node": "A", "text": "t", "fraction": 1.7})
    assert state.nodes["A"].fraction == 1.0


def test_outputs_of_a_node_that_ended():
    state = Progress(["A"])
    state.apply({"kind": "node", "node": "A", "state": "cached", "outputs": {"model": "/m"}})
    assert state.outputs("A") == {"model": "/m"}
    assert state.outputs("B") == {}


def test_text_without_a_fraction_leaves_the_bar_where_it_was():
    state = Progress(["A"])
    state.apply({"kind": "progress", "node": "A", "text": "step 5", "fraction": 0.5})
    state.apply({"kind": "progress", "node": "A", "text": "eval perplexity 2.00"})
    assert (state.nodes["A"].text, state.nodes["A"].fraction) == ("eval perplexity 2.00", 0.5)


def test_facts_of_a_node_are_what_is_known():
    state = Progress(["A", "B"])
    ended = {"kind": "node", "node": "A", "state": "done", "seconds": 2.5, "peak_bytes": 7}
    state.apply(ended)
    assert state.nodes["A"].facts() == {"state": "done", "seconds": 2.5, "peak_bytes": 7}
    assert state.nodes["B"].facts() == {"state": "waiting"}


def test_events_of_a_file_are_added_up(tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    assert list(progress.read(path, ["A"]).nodes) == ["A"]
    monkeypatch.setenv(events.VARIABLE, str(path))
    events.emit("origin", data_fingerprint="f00d", parent=None, start={"model": "m@1"})
    events.emit("node", node="A", state="done", seconds=2.5)
    state = progress.read(path)
    assert state.nodes["A"].seconds == 2.5
    assert state.origin == {"data_fingerprint": "f00d", "parent": None, "start": {"model": "m@1"}}
