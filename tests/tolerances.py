"""Comparison of numbers within the rounding errors of their format.

Processors add in different orders, so results differ by some roundings of the largest number that
takes part. A tolerance therefore follows from the number format and the size of the values.
"""

import ml_dtypes
import numpy as np
import pytest

# The scores of masked positions are larger; they must not raise the tolerance of the others.
_MASKED = 1e6


def tolerance(expected, dtype="float32", roundings=100):
    """The allowed difference, at least that of numbers of size 1.

    Args:
        expected: the numbers.
        dtype: the format of the computation, for example ``bfloat16``.
        roundings: how many relative errors of the format may add up.
    """
    size = np.abs(np.asarray(expected, "float64"))
    size = size[size < _MASKED]  # also not NaN
    largest = max(1.0, size.max(initial=0.0))
    return roundings * float(ml_dtypes.finfo(dtype).eps) * largest


def assert_close(actual, expected, dtype="float32", roundings=100, err_msg=""):
    """Check that arrays of numbers are equal except for rounding; see `tolerance`."""
    relative = roundings * float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(
        np.asarray(actual, "float64"),
        np.asarray(expected, "float64"),
        rtol=relative,
        atol=tolerance(expected, dtype, roundings),
        err_msg=err_msg,
    )


def close_to(expected, dtype="float32", roundings=100, nan_ok=False):
    """A number, or a list of them, that equals others except for rounding; see `tolerance`."""
    return pytest.approx(expected, abs=tolerance(expected, dtype, roundings), nan_ok=nan_ok)
