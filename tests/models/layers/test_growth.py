import numpy as np
import pytest
import tensorflow as tf

from models.layers import growth


@pytest.mark.parametrize("static", [False, True])
def test_a_loop_in_a_graph_carries_what_grows(static):
    def written(like):
        steps = tf.zeros([2, growth.room(like, 9)])

        def more(t, steps):
            return t + 1, growth.append(steps, tf.fill([2, 1], tf.cast(t, tf.float32)), 1, t)

        return tf.while_loop(lambda t, _: t < 4, more, (0, steps))[1]

    spec = tf.TensorSpec([2, 3] if static else [None, None])
    found = tf.function(written, input_signature=[spec])(np.full([2, 3], np.nan, "float32"))
    np.testing.assert_array_equal(found, [[0, 1, 2, 3]] * 2)


def test_where_shapes_are_fixed_there_is_room_from_the_start(monkeypatch):
    monkeypatch.setattr(growth, "can_grow", lambda: False)
    assert growth.room(np.zeros([2, 3]), 9) == 9
    steps = np.zeros([2, 3, 4], "float32")
    new = np.ones([2, 2, 4], "float32")
    # TensorFlow has the kernel of this only where it compiles.
    compiled = tf.function(lambda x, y: growth.append(x, y, 1, 1), jit_compile=True)
    np.testing.assert_array_equal(np.asarray(compiled(steps, new))[:, :, 0], [[0, 1, 1]] * 2)
