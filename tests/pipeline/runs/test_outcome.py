import pytest

from regard.components.common import run_record
from regard.components.common.run_progress import Progress
from regard.pipeline.runs.outcome import judge
from regard.pipeline.runs.supervise import Ending


def _state(trainer="cached", **pushed) -> Progress:
    state = Progress(["Trainer", "Pusher"])
    state.apply({"kind": "node", "node": "Trainer", "state": trainer})
    state.apply(
        {"kind": "node", "node": "Pusher", "state": "done", "properties": {"pushed_model": pushed}}
    )
    return state


def _trained() -> Progress:
    state = Progress(["Trainer"])
    state.apply({"kind": "node", "node": "Trainer", "state": "done"})
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
        (Ending(0, False), _state(pushed=1), run_record.SUCCEEDED, 0),
        (Ending(0, False), _state(pushed=0), run_record.NOT_BLESSED, 3),
        (Ending(0, False), _trained(), run_record.SUCCEEDED, 0),
        (Ending(0, False), Progress(["Trainer"]), run_record.FAILED, 1),
        (Ending(0, False), _state("running", pushed=1), run_record.FAILED, 1),
        (Ending(2, False), _failed(user=True), run_record.FAILED, 2),
        (Ending(1, False), _failed(user=False), run_record.FAILED, 1),
        (Ending(130, True), _stopped(), run_record.INTERRUPTED, 130),
        (Ending(-9, True), _stopped(), run_record.INTERRUPTED, 130),
        (Ending(0, True), _state(pushed=1), run_record.SUCCEEDED, 0),
        (Ending(-9, False), _stopped(), run_record.FAILED, 1),
    ],
)
def test_judge(ending, state, status, code):
    outcome = judge(ending, state)
    assert (outcome.status, outcome.exit_status) == (status, code)


def test_worker_without_a_failure_event_is_explained():
    killed = judge(Ending(-9, False), _stopped()).failure
    assert killed.node == "Trainer"
    assert "memory" in killed.error
    assert "training.batch_tokens" in killed.remedy
    early = Progress(["CorpusGen"])
    early.apply({"kind": "node", "node": "CorpusGen", "state": "running", "time": 1.0})
    early.stop()
    failure = judge(Ending(-9, False), early).failure
    assert "training" not in failure.remedy
    ended = judge(Ending(0, False), _stopped()).failure
    assert (ended.node, ended.user) == ("Trainer", False)
    assert "before all nodes" in ended.error
    assert "sys.exit" in ended.remedy
    assert "SIGSEGV" in judge(Ending(-11, False), _stopped()).failure.error
