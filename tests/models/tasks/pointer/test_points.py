"""Points as a model reads them."""

import numpy as np
import tensorflow as tf

from regard.models.tasks.pointer.points import mark_points, normalize_points
from tests.tolerances import assert_close, close_to

RANDOM = np.random.default_rng(0)
LENGTHS = np.array([5, 2, 1, 0])


def sampled(scale=1.0, move=0.0):
    points = RANDOM.uniform(-1, 1, (4, 5, 2)) * scale + move
    return points.astype("float32")


def test_each_row_fills_the_square():
    points = sampled(3.0, 20.0)
    result = normalize_points(points, LENGTHS).numpy()
    for row, length in enumerate(LENGTHS):
        real, inputs = result[row, :length], points[row, :length].astype("float64")
        assert (result[row, length:] == 0).all()
        if length > 1:
            low, high = inputs.min(0), inputs.max(0)
            expected = (inputs - (low + high) / 2) / ((high - low).max() / 2)
            assert_close(real, expected)
            assert np.abs(real).max() == close_to(1.0)
    assert (result[2, 0] == 0).all()


def test_where_they_lie_and_in_what_unit_does_not_matter():
    points = sampled()
    for scale, move in ((1000.0, 0.0), (0.01, 0.0), (4.0, -37.5)):
        again = normalize_points((points * scale + move).astype("float32"), LENGTHS)
        np.testing.assert_allclose(again, normalize_points(points, LENGTHS), atol=1e-3)


def test_what_stands_behind_a_row_is_not_looked_at():
    points, spoilt = sampled(), sampled(1e30)
    real = np.arange(5) < LENGTHS[:, None]
    spoilt[real] = points[real]
    spoilt[1, 4] = np.nan
    np.testing.assert_array_equal(
        normalize_points(spoilt, LENGTHS), normalize_points(points, LENGTHS)
    )
    np.testing.assert_array_equal(mark_points(spoilt, LENGTHS), mark_points(points, LENGTHS))


def test_points_in_one_place_and_points_at_the_ends_of_float32():
    result = normalize_points(np.full((1, 3, 2), 7.5, "float32"), [3])
    assert (result.numpy() == 0).all()
    largest = np.finfo("float32").max
    result = normalize_points(np.array([[[-largest, 0], [largest, 0]]], "float32"), [2])
    assert_close(result, [[[-1, 0], [1, 0]]])


def test_no_rows_and_no_points():
    for shape in ((0, 0, 2), (0, 3, 2), (2, 0, 2)):
        nothing, lengths = tf.zeros(shape), tf.zeros(shape[:1], tf.int32)
        assert normalize_points(nothing, lengths).shape == shape
        assert mark_points(nothing, lengths).shape == (*shape[:2], 3)
