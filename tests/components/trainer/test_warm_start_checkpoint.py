"""The file of a model to start from."""

import dataclasses

import numpy as np
import pytest

from regard.components.trainer.warm_start_checkpoint import WarmStartCheckpoint
from tests.components.trainer.tiny_training import assert_equal_arrays

ARRAYS = [np.arange(24, dtype="float32").reshape(2, 3, 4), np.array(7, "int64"), np.zeros((0, 2))]


@pytest.mark.parametrize("count", [3, 12])
def test_a_checkpoint_is_read_as_it_was_written(tmp_path, count):
    checkpoint = WarmStartCheckpoint(
        name="tiny@1",
        task="translation",
        model={"encoder": {"units": 4}, "dropout": 0.1},
        weight_names=[f"w{number}" for number in range(count)],
        weights=(4 * ARRAYS)[:count],
        tokenizers={"source": b"\0a\xff", "target": b""},
        updates=9,
        adam_moments=ARRAYS[::-1],
        search={"type": "greedy"},
        digest="abc",
    )
    checkpoint.save(tmp_path / "start.npz")
    loaded = WarmStartCheckpoint.load(tmp_path / "start.npz")
    for name in ("weights", "adam_moments"):
        arrays, expected = getattr(loaded, name), getattr(checkpoint, name)
        assert_equal_arrays(arrays, expected)
        assert [array.dtype for array in arrays] == [array.dtype for array in expected]
    plain = {"weights": [], "adam_moments": []}
    assert dataclasses.replace(loaded, **plain) == dataclasses.replace(checkpoint, **plain)
