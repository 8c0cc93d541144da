"""When a training has a team at all, and what goes from its chief to the others.

`test_together.py` has teams at work.
"""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from components.errors import UserError
from components.trainer.team import Team, gather


class Chief(Team):
    """A chief whose other worker brings zeros, as others do; remembers what it sends."""

    def __init__(self):
        super().__init__(tf.distribute.MirroredStrategy(["CPU:0"]), 0, 2)
        self.sent = []

    def _sum(self, value):
        self.sent.append(value.numpy())
        return super()._sum(value)


def test_one_device_is_no_team():
    assert gather({"devices": "one"}) is None
    assert gather({"devices": "all"}) is None  # a machine without several GPUs


def test_workers_need_their_place(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UserError, match="TF_CONFIG"):
        gather({"devices": "workers"})


def test_weights_are_handed_on_as_float32_and_all_else_exactly():
    team = Chief()
    values = [
        np.array([[0.1, -3e38], [np.nan, 1.0]], np.float32),
        np.array(2**53 - 1),
        np.array([1, 2**32 - 1], np.uint32),
        np.zeros([0, 3], np.float32),
        np.array(0.1),
        np.array([0.1, 3e38], ml_dtypes.bfloat16),
        np.array([0.1, 6e4], np.float16),
    ]
    got = team.from_chief(values)
    for one, value in zip(got, values, strict=True):
        assert one.dtype == value.dtype
        np.testing.assert_array_equal(one, value)
    assert [(sent.dtype, sent.size) for sent in team.sent] == [("float32", 8), ("float64", 4)]
    assert team.told(lambda: {"a": [1, "ü"]}) == {"a": [1, "ü"]}
    assert team.agreed((0.1, 3)) == [0.1, 3.0]
