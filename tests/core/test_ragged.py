"""Rows of different lengths in one array."""

import numpy as np
import pytest

from regard.core.ragged import Ragged

ROWS = [[3, 1], [], [7], [2, 2, 5]]


@pytest.fixture
def ragged():
    values = np.array([value for row in ROWS for value in row], np.int32)
    return Ragged.from_lengths(values, np.array([len(row) for row in ROWS]))


def test_rows_and_lengths(ragged):
    assert [ragged[row].tolist() for row in range(len(ragged))] == ROWS
    assert ragged.lengths.tolist() == [2, 0, 1, 3]


@pytest.mark.parametrize("row", [4, -1])
def test_a_missing_row_is_an_error(ragged, row):
    with pytest.raises(IndexError, match=str(row)):
        ragged[row]


@pytest.mark.parametrize("rows", [[3, 0, 0, 1], [], [1], [2, 3, 1, 0]])
def test_rows_are_taken_in_any_order(ragged, rows):
    some = ragged.take(np.array(rows, int))
    assert [some[row].tolist() for row in range(len(some))] == [ROWS[row] for row in rows]
    assert some.values.dtype == np.int32


def test_padding(ragged):
    assert ragged.to_dense(padding=0).tolist() == [[3, 1, 0], [0, 0, 0], [7, 0, 0], [2, 2, 5]]
    assert ragged.to_dense(padding=-1, extra=1)[1].tolist() == [-1] * 4
    assert ragged.take(np.array([], int)).to_dense(padding=0).shape == (0, 0)
    assert ragged.take(np.array([1])).to_dense(padding=0).shape == (1, 0)
