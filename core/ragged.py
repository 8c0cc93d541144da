"""Rows of different lengths in one NumPy array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths.

    Attributes:
        values: The values of all rows, one row after the other, ``[values]``.
        splits: Where the rows begin, and the end of the last one, ``[rows + 1]``.
    """

    values: np.ndarray
    splits: np.ndarray

    @classmethod
    def from_lengths(cls, values: np.ndarray, lengths: np.ndarray) -> Ragged:
        """Return the rows of these lengths, ``[rows]``."""
        return cls(values, np.concatenate([[0], np.cumsum(lengths)]))

    def __len__(self) -> int:
        return len(self.splits) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        """Return the values of a row, counted from 0."""
        if not 0 <= row < len(self):
            raise IndexError(f"There are {len(self)} rows, counted from 0, so there is no {row}.")
        return self.values[self.splits[row] : self.splits[row + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """The lengths of the rows, ``[rows]``."""
        return np.diff(self.splits)

    def take(self, rows: np.ndarray) -> Ragged:
        """Return the rows with these numbers, in their order."""
        starts, lengths = self.splits[rows], self.lengths[rows]
        splits = np.concatenate([[0], np.cumsum(lengths)])
        shifts = np.repeat(starts - splits[:-1], lengths)
        return Ragged(self.values[np.arange(len(shifts)) + shifts], splits)

    def to_dense(self, padding: float, extra: int = 0) -> np.ndarray:
        """Return the rows with padding after them, ``[rows, longest + extra]``.

        Args:
            padding: The value after the end of a row.
            extra: The number of further columns.
        """
        lengths = self.lengths
        width = int(lengths.max(initial=0)) + extra
        dense = np.full((len(self), width), padding, self.values.dtype)
        dense[np.arange(width) < lengths[:, None]] = self.values
        return dense
