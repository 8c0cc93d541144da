"""When a training has a team at all; `test_together.py` has teams at work."""

import pytest

from components.errors import UserError
from components.trainer.team import gather


def test_one_device_is_no_team():
    assert gather({"devices": "one"}) is None
    assert gather({"devices": "all"}) is None  # a machine without several GPUs


def test_workers_need_their_place(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UserError, match="TF_CONFIG"):
        gather({"devices": "workers"})
