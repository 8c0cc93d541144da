"""Who may lead and who may follow; `tests/e2e/test_workers.py` has the processes themselves."""

import errno
import json
import pickle
import socket
import subprocess
from types import SimpleNamespace

import pytest

from components.errors import UserError
from components.trainer import member

LOST = """Graph execution error:

Detected at node CollectiveReduceV2 defined at (most recent call last):
<stack traces unavailable>
Collective ops is aborted by: failed to connect to all addresses; last error: b:2
\t [[{{node CollectiveReduceV2}}]] [Op:__inference__step_1]"""


@pytest.fixture
def place(monkeypatch):
    def give(index):
        task = {"type": "worker", "index": index}
        monkeypatch.setenv(
            "TF_CONFIG", json.dumps({"cluster": {"worker": ["a:1", "b:2"]}, "task": task})
        )

    return give


def test_only_worker_0_leads(place):
    place(1)
    with pytest.raises(UserError, match="this is worker 1") as error:
        member.lead(SimpleNamespace())
    assert "regard worker" in error.value.remedy


def test_worker_0_does_not_follow(place):
    place(0)
    with pytest.raises(UserError, match="the chief") as error:
        member.follow()
    assert "regard run" in error.value.remedy


def test_the_reason_of_a_lost_connection():
    assert member.reason(LOST).startswith("Collective ops is aborted by: failed to connect")
    assert member.reason("Socket closed") == "Socket closed"
    assert member.reason("") == "no reason given"


def test_what_the_chief_s_training_raises_is_raised_where_it_is_waited_for(monkeypatch, capfd):
    """A chief without others, and without the settings of a training."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{one.getsockname()[1]}"
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": [address]}, "task": task}))
    job = dict.fromkeys(member._NEEDED, "") | {"custom_config": {}}
    with pytest.raises(KeyError, match="training"):
        member.lead(SimpleNamespace(**job))
    assert "Traceback" in capfd.readouterr().err  # of the process where it happened, for the log


@pytest.mark.parametrize(
    "error",
    [
        UserError("no row", "training.max_length", "Raise it."),
        FloatingPointError("the loss is nan at step 3"),
        OSError(errno.ENOSPC, "No space left on device", "/data"),
    ],
)
def test_an_error_is_the_same_in_another_process(error):
    got = pickle.loads(member.failure(error))
    assert type(got) is type(error)
    assert got.args == error.args
    assert str(got) == str(error)


class Two(Exception):
    """Is pickled, and cannot be made again."""

    def __init__(self, one, other):
        super().__init__(f"{one}, {other}")


def test_an_error_that_cannot_leave_its_process_goes_as_text():
    class Local(Exception):
        pass

    for error, told in ((Local("here"), "Local: here"), (Two(1, 2), "Two: 1, 2")):
        got = pickle.loads(member.failure(error))
        assert type(got) is RuntimeError
        assert str(got) == told


@pytest.mark.parametrize(
    ("script", "told"),
    [("kill -9 $$", "training.batch_tokens"), ("kill -6 $$", "SIGABRT"), ("exit 7", "status 7")],
)
def test_a_process_that_says_nothing_itself(script, told):
    text = member.ended(subprocess.run(["sh", "-c", script], check=False).returncode)
    assert told in text
    assert "Start all workers again" not in text
