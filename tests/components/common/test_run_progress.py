from regard.components.common import run_progress
from regard.components.common.run_progress import Progress
from regard.core import events
from regard.core.errors import Failure


def after(*applied: dict) -> Progress:
    """Return the progress of the nodes A and B after some events."""
    state = Progress(["A", "B"])
    for event in applied:
        state.apply(event)
    return state


RUNNING = {"kind": "node", "node": "A", "state": "running", "time": 1.0}


def test_failure_keeps_reason_place_and_remedy():
    failure = {"node": "A", "error": "e", "where": "w", "user": True}
    state = after(RUNNING, {"kind": "node", "state": "failed", **failure})
    assert state.failure.to_dict() == failure


def test_failure_outside_of_the_nodes():
    assert after({"kind": "run", "state": "failed", "error": "e"}).failure == Failure(error="e")


def test_stop_ends_only_what_runs():
    state = after(RUNNING)
    state.stop()
    assert [node.state for node in state.nodes.values()] == ["stopped", "waiting"]


def test_unknown_events_and_nodes_do_no_harm():
    state = after({"kind": "later", "node": "A"}, {**RUNNING, "node": "New"})
    assert state.nodes["New"].state == "running"


def test_outputs_of_a_node_that_ended():
    state = after({"kind": "node", "node": "A", "state": "cached", "outputs": {"model": "/m"}})
    assert state.outputs("A") == {"model": "/m"}
    assert state.outputs("B") == {}


def test_fraction_is_at_most_1_and_kept_without_a_new_one():
    event = {"kind": "progress", "node": "A", "text": "step 5", "fraction": 1.7}
    assert after(event).nodes["A"].fraction == 1.0
    state = after({**event, "fraction": 0.5}, {"kind": "progress", "node": "A", "text": "eval"})
    assert (state.nodes["A"].text, state.nodes["A"].fraction) == ("eval", 0.5)


def test_facts_of_a_node_are_what_is_known():
    facts = {"state": "done", "seconds": 2.5, "peak_bytes": 7}
    state = after({"kind": "node", "node": "A", **facts})
    assert state.nodes["A"].facts() == facts
    assert state.nodes["B"].facts() == {"state": "waiting"}


def test_events_of_a_file_are_added_up(tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    assert list(run_progress.read(path, ["A"]).nodes) == ["A"]
    monkeypatch.setenv(events.VARIABLE, str(path))
    events.emit("origin", data_fingerprint="f00d", parent=None, start={"model": "m@1"})
    events.emit("node", node="A", state="done", seconds=2.5)
    state = run_progress.read(path)
    assert state.nodes["A"].seconds == 2.5
    assert state.origin.to_dict() == {
        "data_fingerprint": "f00d",
        "parent": None,
        "start": {"model": "m@1"},
    }
