"""Compare tables of predictions, whose scores differ by rounding.

The batches of the Predictor are the same with every runner, but the number of threads of an
operation is that of the process. Some processors then add in another order.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# Share of a number, or of 1 if it is smaller: about a thousand relative errors of float32.
_TOLERANCE = 1e-4


def find_different_columns(actual: Path, expected: Path) -> list[str]:
    """Return the columns that differ, floating-point numbers by more than rounding.

    Args:
        actual: a Parquet file of the Predictor.
        expected: another with the same rows.
    """
    first, second = pq.ParquetFile(actual).read(), pq.ParquetFile(expected).read()
    names = sorted({*first.column_names, *second.column_names})
    if first.schema != second.schema or first.num_rows != second.num_rows:
        return names
    return [name for name in names if not _are_close(first[name], second[name])]


def _are_close(first: pa.ChunkedArray, second: pa.ChunkedArray) -> bool:
    if not _is_floating(first.type):
        return first.equals(second)
    pairs = zip(first.to_pylist(), second.to_pylist(), strict=True)
    return all(_values_are_close(value, expected) for value, expected in pairs)


def _is_floating(kind: pa.DataType) -> bool:
    while pa.types.is_list(kind):
        kind = kind.value_type
    return pa.types.is_floating(kind)


def _values_are_close(value: object, expected: object) -> bool:
    """Compare two numbers, or two lists of the same lengths."""
    if isinstance(value, list) and isinstance(expected, list):
        return len(value) == len(expected) and all(map(_values_are_close, value, expected))
    if not isinstance(value, float) or not isinstance(expected, float):
        return value is expected  # null
    return bool(np.isclose(value, expected, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True))
