import numpy as np
import pytest
import tensorflow as tf

from regard.models.layers.dropout import Dropout


@pytest.mark.parametrize("noise_shape", [None, (None, 1, None)])
def test_one_mask_serves_the_axes_of_the_noise_shape_that_are_1(noise_shape):
    dropout = Dropout(0.5, noise_shape=noise_shape, seed=1)
    dropped = np.asarray(dropout(np.ones((40, 6, 8), "float32"), training=True))
    assert set(np.unique(dropped)) == {0.0, 2.0}
    assert (dropped == dropped[:, :1]).all() == (noise_shape is not None)
    assert not (dropped == dropped[:1]).all()  # every row has its own
    assert dropped.mean() == pytest.approx(1.0, abs=0.15)
    np.testing.assert_array_equal(dropout(np.ones((2, 3, 4))), np.ones((2, 3, 4)))


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(400, 301), (7, 11, 13, 101)])
def test_drops_its_share_and_keeps_the_mean(rate, shape):
    dropped = np.array(Dropout(rate, seed=3)(np.ones(shape, "float32"), training=True))
    retained = np.unique(dropped[dropped != 0])
    np.testing.assert_allclose(retained, [1 / (1 - rate)], rtol=1e-4)
    share, count = (dropped == 0).mean(), dropped.size
    assert abs(share - rate) < 4 * np.sqrt(rate * (1 - rate) / count)
    # Neighbours share a random number, and yet know nothing of each other.
    flat = (dropped == 0).ravel().astype("float64")
    for apart in (1, 2, 3):
        assert abs(np.corrcoef(flat[:-apart], flat[apart:])[0, 1]) < 4 / np.sqrt(count)


def test_the_gradient_passes_where_numbers_were_kept():
    inputs = tf.ones((5, 9))
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = Dropout(0.4, seed=3)(inputs, training=True)
        total = tf.reduce_sum(outputs)
    np.testing.assert_array_equal(tape.gradient(total, inputs), outputs)


def test_masks_are_sampled_per_call_in_training_only():
    layer, inputs = Dropout(0.5, seed=3), np.ones((20, 20), "float32")
    np.testing.assert_array_equal(layer(inputs), inputs)
    one, other = (np.array(layer(inputs, training=True)) for _ in range(2))
    assert (one != other).any()
    again = np.array(Dropout(0.5, seed=3)(inputs, training=True))
    np.testing.assert_array_equal(again, one)


def test_drops_in_graphs_of_unknown_shapes():
    layer = Dropout(0.5, seed=3)
    graph = tf.function(
        lambda x: layer(x, training=True), input_signature=[tf.TensorSpec([None, None, 3])]
    )
    assert 0 < (np.array(graph(np.ones((5, 7, 3), "float32"))) == 0).mean() < 1
    assert graph(np.ones((0, 7, 3), "float32")).shape == (0, 7, 3)


@pytest.mark.parametrize("rate", [1.0, 1.0 - 1e-7])
def test_a_rate_of_one_keeps_nothing(rate):
    inputs = np.ones((400, 400), "float32")
    assert not np.any(Dropout(rate, seed=3)(inputs, training=True))
    np.testing.assert_array_equal(Dropout(rate)(inputs), inputs)
