"""One pass over the weights does what Keras's optimizers do."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from components.trainer import adam

PAIRS = {
    "Adam": (adam.Adam, keras.optimizers.Adam, {}),
    "AdamW": (adam.AdamW, keras.optimizers.AdamW, {"weight_decay": 0.1}),
}


def weights():
    random = np.random.default_rng(5)
    shapes = [(7, 4), (4, 3), (3,)]
    return [keras.Variable(random.normal(size=shape), dtype="float32") for shape in shapes]


def gradients(step, size=1.0):
    """Of a table of which some rows were looked up, one of them twice; a matrix; an offset."""
    random = np.random.default_rng(step)
    parts = random.normal(size=(3, 4)) * size
    rows = tf.IndexedSlices(tf.cast(parts, tf.float32), tf.constant([1, 5, 1]), tf.constant([7, 4]))
    rest = [tf.cast(random.normal(size=shape) * size, tf.float32) for shape in [(4, 3), (3,)]]
    return [rows, *rest]


def whole(parts):
    return [tf.convert_to_tensor(part) for part in parts]


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("clip", [None, 0.5, 1e6])
def test_equals_keras(kind, clip):
    ours, theirs, options = PAIRS[kind]
    options = {**options, "learning_rate": 0.01, "beta_2": 0.98, "epsilon": 1e-8}
    options["global_clipnorm"] = clip
    found, wanted = weights(), weights()
    one, other = ours(**options), theirs(**options)
    one.build(found)
    other.build(wanted)
    apply = tf.function(lambda *parts: one.apply(parts, found))
    for step in range(5):
        apply(*gradients(step))
        other.apply(whole(gradients(step)), wanted)
    for mine, keras_own in zip(one.variables + found, other.variables + wanted, strict=True):
        np.testing.assert_allclose(mine, keras_own, rtol=2e-5, atol=1e-7, err_msg=mine.path)


def test_clips_what_lookups_of_one_piece_add_up_to():
    """The norm of the whole gradient, not of the parts that a table's has."""
    table = keras.Variable(np.zeros((7, 4)), dtype="float32")
    one = adam.Adam(learning_rate=1.0, global_clipnorm=1.0)
    one.build([table])
    twice = tf.IndexedSlices(tf.ones((2, 4)), tf.constant([2, 2]), tf.constant([7, 4]))
    (clipped,) = one._clip_gradients([twice])
    assert float(tf.norm(clipped)) == pytest.approx(1.0)
    np.testing.assert_allclose(clipped[2], 0.5 * np.ones(4), rtol=1e-6)


def test_a_gradient_that_is_no_number_stays_one():
    """So that the training sees it and ends."""
    table = keras.Variable(np.zeros(3), dtype="float32")
    one = adam.Adam(global_clipnorm=1.0)
    one.build([table])
    one.apply([tf.constant([1.0, np.inf, 0.0])], [table])
    assert np.isnan(np.array(table)).any()
