"""Grid layers compared with NumPy."""

import keras
import numpy as np
import pytest

from regard.models.layers.grid import Coordinates, GridPositions, GridSelfAttention
from tests.tolerances import assert_close

GRID = np.random.default_rng(4).normal(size=(2, 3, 4, 8)).astype("float32")


def attention():
    keras.utils.set_random_seed(2)
    layer = GridSelfAttention()
    layer.build(GRID.shape)
    return layer


def test_coordinates():
    result = np.asarray(Coordinates()(GRID))
    np.testing.assert_array_equal(result[..., :8], GRID)
    np.testing.assert_allclose(result[1, :, 2, 8], [-1, 0, 1])
    assert_close(result[0, 1, :, 9], [-1, -1 / 3, 1 / 3, 1])


@pytest.mark.parametrize("depth", [8, 7])
def test_a_cell_gets_the_sinusoids_of_its_row_and_of_its_column(depth):
    grid = GRID[..., :depth]
    layer = GridPositions("sinusoidal", (3, 4))
    layer.build(grid.shape)
    expected = grid.astype("float64")
    halves = ((depth + 1) // 2, depth // 2)
    for row in range(3):
        for column in range(4):
            for place, half, start in ((row, halves[0], 0), (column, halves[1], halves[0])):
                for i in range(half):
                    phase = place / 10000 ** (2 * (i // 2) / half)
                    wave = np.cos(phase) if i % 2 else np.sin(phase)
                    expected[:, row, column, start + i] += wave
    assert_close(layer(grid), expected)


def test_rows_and_columns_are_learned_apart():
    layer = GridPositions("learned", (3, 4))
    layer.build(GRID.shape)
    rows, columns = (np.asarray(side.table) for side in layer.sides)
    assert (rows.shape, columns.shape) == ((3, 4), (4, 4))
    result = np.asarray(layer(GRID)) - GRID
    assert_close(result[1, :, 2, :4], rows)
    assert_close(result[0, 1, :, 4:], columns)


def test_it_begins_as_if_it_were_not_there():
    np.testing.assert_array_equal(attention()(GRID), GRID)


def test_as_its_formula():
    layer = attention()
    layer.gamma.assign(0.7)
    result = np.asarray(layer(GRID))
    f, g, h, v = (
        np.asarray(part.kernel, "float64")
        for part in (layer.query, layer.key, layer.value, layer.output_layer)
    )
    for row in range(2):
        cells = GRID[row].reshape(12, 8).astype("float64")
        scores = np.exp((cells @ f) @ (cells @ g).T)
        attended = (scores / scores.sum(-1, keepdims=True)) @ (cells @ h) @ v
        assert_close(result[row].reshape(12, 8), cells + 0.7 * attended)


@pytest.mark.parametrize("depth", [1, 4])
def test_every_depth_has_queries_and_values(depth):
    layer = GridSelfAttention()
    layer.build((None, 3, 4, depth))
    np.testing.assert_array_equal(layer(GRID[..., :depth]), GRID[..., :depth])
