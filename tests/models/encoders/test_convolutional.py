"""Images to a grid of features."""

import keras
import numpy as np
import pytest

from regard.models.encoders.convolutional import ConvolutionalEncoder
from tests.tolerances import assert_close

IMAGES = np.random.default_rng(6).integers(0, 256, (3, 16, 24, 3)).astype("uint8")


def created(**settings):
    keras.utils.set_random_seed(1)
    encoder = ConvolutionalEncoder(
        **{"size": (16, 24), "channels": (8, 16), "units": 6, **settings}
    )
    encoder.build()
    return encoder


def test_a_cell_of_the_grid_is_a_position_of_the_memory():
    encoder = created()
    memory = encoder(IMAGES)
    assert encoder.grid == (4, 6)
    assert memory["values"].shape == (3, 24, encoder.depth)
    assert keras.ops.convert_to_numpy(memory["mask"]).all()


@pytest.mark.parametrize("self_attention", [False, True])
def test_an_image_in_a_batch_is_as_alone(self_attention):
    encoder = created(self_attention=self_attention)
    if self_attention:
        encoder.self_attention.gamma.assign(1.0)
    alone = encoder(IMAGES[1:2])["values"]
    assert_close(encoder(IMAGES)["values"][1:2], alone)


def test_a_change_of_the_image_is_seen_where_it_is():
    encoder = created()
    changed = IMAGES.copy()
    changed[:, :4, :4] = 255 - changed[:, :4, :4]
    difference = np.asarray(encoder(IMAGES)["values"] - encoder(changed)["values"])
    shifted = np.abs(difference).reshape(3, 4, 6, -1).max(axis=(0, 3))
    assert shifted[:2, :2].min() > 0.01
    assert shifted[3, 3:].max() == 0.0


def test_the_memory_encodes_positions():
    """Without coordinates an even image would give the same in every inner cell."""
    even = np.full((1, 16, 24, 3), 90, "uint8")
    values = np.asarray(created()(even)["values"]).reshape(4, 6, -1)
    assert not np.allclose(values[1, 1], values[2, 4], atol=1e-3)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_positions_say_where_a_cell_is_whatever_is_in_it(positions):
    plain, placed = created(), created(positions=positions)
    weights = iter(plain.get_weights())
    for variable in placed.weights:
        if "positions" not in variable.path:
            variable.assign(next(weights))
    added = np.asarray(placed(IMAGES)["values"]) - np.asarray(plain(IMAGES)["values"])
    assert_close(added[0], added[2])
    distances = np.linalg.norm(added[0, :, None] - added[0, None], axis=-1)
    assert distances[~np.eye(24, dtype=bool)].min() > 0.1
    assert_close(added[0].reshape(4, 6, 6)[2, :, :3].std(axis=0), 0)
