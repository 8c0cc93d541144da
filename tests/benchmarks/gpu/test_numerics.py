"""The comparison of outputs within the tolerances of the tests."""

import numpy as np
import pytest

from benchmarks.gpu import numerics, searching

EXPECTED = [np.array([1.0, -2.0, np.nan])]


@pytest.mark.parametrize(
    ("outputs", "equal"),
    [
        ([[1.0, -2.0, np.nan]], True),
        ([[1.00001, -2.0, np.nan]], True),
        ([[1.001, -2.0, np.nan]], False),
        ([[1.0, -2.0, 0.0]], False),
        ([[1.0, -2.0]], False),
        ([], False),
    ],
)
def test_outputs_are_compared_within_the_tolerance(outputs, equal):
    assert numerics.compare_outputs(outputs, EXPECTED, roundings=100)["equal"] is equal


def test_outputs_of_searches_are_compared_row_by_row():
    rows = searching.trim(np.array([[5, 3, 0], [6, 7, 3]]))
    assert rows == [[5, 3], [6, 7, 3]]
    assert searching.share_equal(rows, [[5, 3], [6, 3]]) == 0.5
