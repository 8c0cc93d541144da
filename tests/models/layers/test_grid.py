"""Layers over a grid, beside NumPy."""

import keras
import numpy as np
import pytest

from models.layers.grid import Coordinates, GridSelfAttention

GRID = np.random.default_rng(4).normal(size=(2, 3, 4, 8)).astype("float32")


def attention(**options):
    keras.utils.set_random_seed(2)
    layer = GridSelfAttention(**{"reduction": 4, **options})
    layer.build(GRID.shape)
    return layer


def test_coordinates():
    found = np.asarray(Coordinates()(GRID))
    np.testing.assert_array_equal(found[..., :8], GRID)
    np.testing.assert_allclose(found[1, :, 2, 8], [-1, 0, 1])
    np.testing.assert_allclose(found[0, 1, :, 9], [-1, -1 / 3, 1 / 3, 1], atol=1e-6)


def test_it_begins_as_if_it_were_not_there():
    np.testing.assert_array_equal(attention()(GRID), GRID)


def test_as_its_formula():
    layer = attention()
    layer.gamma.assign(0.7)
    found = np.asarray(layer(GRID))
    f, g, h, v = (
        np.asarray(part.kernel, "float64")
        for part in (layer.query, layer.key, layer.value, layer.output_layer)
    )
    for row in range(2):
        cells = GRID[row].reshape(12, 8).astype("float64")
        scores = np.exp((cells @ f) @ (cells @ g).T)
        seen = (scores / scores.sum(-1, keepdims=True)) @ (cells @ h) @ v
        np.testing.assert_allclose(found[row].reshape(12, 8), cells + 0.7 * seen, atol=1e-5)


def test_too_little_depth():
    with pytest.raises(ValueError, match="depth 8 cannot be reduced by 16"):
        attention(reduction=16)


def test_round_trip():
    layer = attention()
    assert GridSelfAttention.from_config(layer.get_config()).reduction == 4
