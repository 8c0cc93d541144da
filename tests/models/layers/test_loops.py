import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.models.layers import loops
from regard.models.layers.loops import batch_first, scan_steps
from tests.tolerances import assert_close

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
    assert_close(all_totals, expected)
    assert_close(last, expected[-1])


def test_rows_first_swaps_steps_and_rows():
    x = RANDOM.normal(size=(4, 2, 3))
    np.testing.assert_array_equal(batch_first(batch_first(x)), x)
    np.testing.assert_array_equal(batch_first(x)[1, 3], x[3, 1])


@pytest.mark.parametrize("static", [False, True])
def test_a_tensor_grows_in_a_graph_loop(static):
    def fill(like):
        steps = tf.zeros([2, loops.initial_length(like, 9)])

        def more(t, steps):
            return t + 1, loops.append_step(steps, tf.fill([2, 1], tf.cast(t, tf.float32)), 1, t)

        return tf.while_loop(lambda t, _: t < 4, more, (0, steps))[1]

    spec = tf.TensorSpec([2, 3] if static else [None, None])
    result = tf.function(fill, input_signature=[spec])(np.full([2, 3], np.nan, "float32"))
    np.testing.assert_array_equal(result, [[0, 1, 2, 3]] * 2)


def test_with_fixed_shapes_a_tensor_has_its_maximum_length_from_the_start(monkeypatch):
    monkeypatch.setattr(loops, "can_grow", lambda: False)
    assert loops.initial_length(np.zeros([2, 3]), 9) == 9
    steps = np.zeros([2, 3, 4], "float32")
    new = np.ones([2, 2, 4], "float32")
    # TensorFlow has the kernel of this only where it compiles.
    compiled = tf.function(lambda x, y: loops.append_step(x, y, 1, 1), jit_compile=True)
    np.testing.assert_array_equal(np.asarray(compiled(steps, new))[:, :, 0], [[0, 1, 1]] * 2)
