import keras
import numpy as np
import pytest

from models.layers.loops import rows_first, scan_steps

RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("count", [1, 3])
def test_scan_gives_each_input_its_own_slice(count):
    inputs = [RANDOM.normal(size=(4, 2, 1 + n)).astype("float32") for n in range(count)]

    def step(total, now):
        assert len(now) == count
        total = total + sum(keras.ops.sum(x, axis=-1) for x in now)
        return total, total

    last, all_totals = scan_steps(step, np.zeros(2, "float32"), inputs)
    expected = np.cumsum(sum(x.sum(-1) for x in inputs), axis=0)
    np.testing.assert_allclose(all_totals, expected, atol=1e-5)
    np.testing.assert_allclose(last, expected[-1], atol=1e-5)


def test_rows_first_swaps_steps_and_rows():
    x = RANDOM.normal(size=(4, 2, 3))
    np.testing.assert_array_equal(rows_first(rows_first(x)), x)
    np.testing.assert_array_equal(rows_first(x)[1, 3], x[3, 1])
