"""Who may lead and who may follow; `tests/e2e/test_workers.py` has the processes themselves."""

import json
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
