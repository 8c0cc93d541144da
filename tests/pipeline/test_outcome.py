from __future__ import annotations

import io

import pytest
from rich.console import Console

from pipeline import outcome, runs
from pipeline.progress import Progress
from pipeline.runners.supervise import Ending


def _state(**pushed) -> Progress:
    state = Progress(["Trainer", "Pusher"])
    state.apply(
        {"kind": "node", "node": "Pusher", "state": "done", "properties": {"pushed_model": pushed}}
    )
    return state


def _failed(**fields) -> Progress:
    state = Progress(["Trainer"])
    state.apply({"kind": "node", "node": "Trainer", "state": "failed", "error": "e", **fields})
    return state


def _stopped() -> Progress:
    state = Progress(["Trainer"])
    state.apply({"kind": "node", "node": "Trainer", "state": "running", "time": 1.0})
    state.stop()
    return state


@pytest.mark.parametrize(
    ("ending", "state", "status", "code"),
    [
        (Ending(0, False), _state(pushed=1), runs.SUCCEEDED, 0),
        (Ending(0, False), _state(pushed=0), runs.NOT_BLESSED, 3),
        (Ending(0, False), Progress(["Trainer"]), runs.SUCCEEDED, 0),
        (Ending(2, False), _failed(user=True), runs.FAILED, 2),
        (Ending(1, False), _failed(user=False), runs.FAILED, 1),
        (Ending(130, True), _stopped(), runs.INTERRUPTED, 130),
        (Ending(-9, True), _stopped(), runs.INTERRUPTED, 130),
        (Ending(0, True), _state(pushed=1), runs.SUCCEEDED, 0),
        (Ending(-9, False), _stopped(), runs.FAILED, 1),
    ],
)
def test_judge(ending, state, status, code):
    judged = outcome.judge(ending, state)
    assert (judged.status, judged.exit_status) == (status, code)


def test_worker_that_says_nothing_is_explained():
    killed = outcome.judge(Ending(-9, False), _stopped()).failure
    assert killed["node"] == "Trainer"
    assert "memory" in killed["error"]
    assert "training.batch_tokens" in killed["remedy"]
    early = Progress(["CorpusGen"])
    early.apply({"kind": "node", "node": "CorpusGen", "state": "running", "time": 1.0})
    early.stop()
    remedy = outcome.judge(Ending(-9, False), early).failure["remedy"]
    assert "training" not in remedy
    assert "SIGSEGV" in outcome.judge(Ending(-11, False), _stopped()).failure["error"]


def _shown(judged: outcome.Outcome) -> str:
    console = Console(file=io.StringIO(), width=60)
    outcome.show(judged, {"log": "/w/log.txt", "nodes": {}}, console, "my configs/a.yaml")
    return console.file.getvalue()


def test_failure_names_node_reason_place_remedy_log_and_how_to_go_on():
    failure = {"node": "Trainer", "error": "too large", "where": "k", "remedy": "Make it smaller."}
    text = _shown(outcome.Outcome(runs.FAILED, 2, failure))
    assert "Trainer failed: too large" in text
    for part in ("k\n", "Make it smaller.", "/w/log.txt", "regard run 'my configs/a.yaml'"):
        assert part in text


def test_interruption_says_how_to_go_on():
    text = _shown(outcome.Outcome(runs.INTERRUPTED, 130))
    assert "Interrupted" in text
    assert "regard run 'my configs/a.yaml'" in text
