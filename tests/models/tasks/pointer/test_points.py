"""Points as a model reads them."""

import numpy as np
import pytest
import tensorflow as tf

from models.tasks.pointer.points import as_read, normalised

RANDOM = np.random.default_rng(0)
LENGTHS = np.array([5, 2, 1, 0])


def drawn(scale=1.0, move=0.0):
    points = RANDOM.uniform(-1, 1, (4, 5, 2)) * scale + move
    return points.astype("float32")


def test_each_row_fills_the_square():
    points = drawn(3.0, 20.0)
    found = normalised(points, LENGTHS).numpy()
    for row, length in enumerate(LENGTHS):
        real, given = found[row, :length], points[row, :length].astype("float64")
        assert (found[row, length:] == 0).all()
        if length > 1:
            low, high = given.min(0), given.max(0)
            expected = (given - (low + high) / 2) / ((high - low).max() / 2)
            np.testing.assert_allclose(real, expected, atol=1e-5)
            assert np.abs(real).max() == pytest.approx(1.0, abs=1e-5)
    assert (found[2, 0] == 0).all()


def test_where_they_lie_and_in_what_unit_does_not_matter():
    points = drawn()
    for scale, move in ((1000.0, 0.0), (0.01, 0.0), (4.0, -37.5)):
        again = normalised((points * scale + move).astype("float32"), LENGTHS)
        np.testing.assert_allclose(again, normalised(points, LENGTHS), atol=1e-3)


def test_what_stands_behind_a_row_is_not_looked_at():
    points, spoilt = drawn(), drawn(1e30)
    real = np.arange(5) < LENGTHS[:, None]
    spoilt[real] = points[real]
    spoilt[1, 4] = np.nan
    np.testing.assert_array_equal(normalised(spoilt, LENGTHS), normalised(points, LENGTHS))
    np.testing.assert_array_equal(as_read(spoilt, LENGTHS), as_read(points, LENGTHS))


def test_points_in_one_place_and_points_at_the_ends_of_float32():
    found = normalised(np.full((1, 3, 2), 7.5, "float32"), [3])
    assert (found.numpy() == 0).all()
    largest = np.finfo("float32").max
    found = normalised(np.array([[[-largest, 0], [largest, 0]]], "float32"), [2])
    np.testing.assert_allclose(found, [[[-1, 0], [1, 0]]])


def test_as_read():
    found = as_read(drawn(), LENGTHS).numpy()
    assert found.shape == (4, 5, 3)
    np.testing.assert_array_equal(found[..., 2], np.arange(5) < LENGTHS[:, None])


def test_no_rows_and_no_points():
    for shape in ((0, 0, 2), (0, 3, 2), (2, 0, 2)):
        nothing, lengths = tf.zeros(shape), tf.zeros(shape[:1], tf.int32)
        assert normalised(nothing, lengths).shape == shape
        assert as_read(nothing, lengths).shape == (*shape[:2], 3)
