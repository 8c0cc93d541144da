"""Marks of parametrized tests."""

import pytest


def slow(*values):
    """One set of values, marked slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


def slow_except(quick, values):
    """Values of which only some are quick enough for ``make test``."""
    return [value if value in quick else slow(value) for value in values]
