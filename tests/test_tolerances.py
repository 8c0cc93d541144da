"""The tolerances of other tests."""

import numpy as np
import pytest

from tests.tolerances import assert_close, close_to, tolerance

EPSILON = 2.0**-23  # of float32


@pytest.mark.parametrize("expected", [12.0, [0.5, -12.0], [[12.0, np.nan]], [12.0, -1e9, -np.inf]])
def test_it_grows_with_the_largest_number_that_is_not_masked(expected):
    assert tolerance(expected) == 100 * EPSILON * 12


@pytest.mark.parametrize("expected", [[], 0.0, [1e-3], [np.nan], [-1e9]])
def test_it_is_at_least_that_of_one(expected):
    assert tolerance(expected, roundings=3) == 3 * EPSILON


@pytest.mark.parametrize(("dtype", "epsilon"), [("bfloat16", 2.0**-7), ("float16", 2.0**-10)])
def test_it_depends_on_the_format(dtype, epsilon):
    assert tolerance([5.0], dtype, roundings=4) == 20 * epsilon


def test_roundings_are_accepted_and_errors_are_not():
    assert_close([12.46519, 1e-7], [12.46520, 0.0])
    assert_close([np.nan, -np.inf], [np.nan, -np.inf])
    assert close_to(5.0131, "bfloat16", roundings=2) == 4.96875
    for wrong in ([12.4682, 0.0], [12.4652, 1e-3], [np.nan, 0.0]):
        with pytest.raises(AssertionError):
            assert_close(wrong, [12.4652, 0.0])
    assert float("nan") != close_to(float("nan"))
    assert float("nan") == close_to(float("nan"), nan_ok=True)


def test_a_masked_score_does_not_hide_an_error_of_another():
    with pytest.raises(AssertionError):
        assert_close([0.5, -1e9], [0.6, -1e9])
