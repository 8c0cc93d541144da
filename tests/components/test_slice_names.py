from __future__ import annotations

import pytest

from components.slice_names import length_names, length_ranges, share_names


def test_lengths():
    assert length_names([10, 20]) == ["0-10", "11-20", "21+"]
    assert length_ranges([10, 20]) == [(0, 10), (11, 20), (21, None)]
    assert length_names([]) == ["0+"]


@pytest.mark.parametrize(
    ("bounds", "names"),
    [
        ([0.0, 0.1, 0.25], ["0", "0-0.1", "0.1-0.25", "0.25+"]),
        ([0.05], ["0-0.05", "0.05+"]),
        ([0.0], ["0", ">0"]),
        ([0.5, 1.0], ["0-0.5", "0.5-1", "1+"]),
        (
            [0.1234567, 0.12345678],
            ["0-0.1234567", "0.1234567-0.12345678", "0.12345678+"],
        ),
    ],
)
def test_shares(bounds, names):
    assert share_names(bounds) == names
