"""Checks of the lengths of the texts of a row, and what all checks share."""

import pytest

from regard.components.checks.base import RowCheck
from regard.components.settings.data_checks import DataChecksConfig
from tests.components.corpora import affected

CHECKS = {"empty_side": {}, "length_ratio": {"ratio": 3.0}, "too_long": {"characters": 10}}


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (("abc", "ab"), []),
        ((" \u3000", "ab"), ["empty_side"]),
        (("ab", "\u200b\ufeff"), ["empty_side"]),
        (("abcd" * 2, "\u200b" * 8), ["empty_side", "length_ratio"]),
        (("ab", "a\u200b"), []),
        (("", "abcd"), ["empty_side", "length_ratio"]),
        (("abc", "a" * 9), []),
        (("abc", "a" * 10), ["length_ratio"]),
        (("漢" * 11, "a" * 9), ["too_long"]),
    ],
)
def test_checks_of_lengths(row, names):
    assert affected([[row[0]]], [[row[1]]], **CHECKS) == names


@pytest.mark.parametrize(
    ("sides", "names"),
    [
        ([["abc"], ["ab", "a" * 9]], []),  # only the first one counts
        ([["abc"], ["a" * 10, "ab"]], ["length_ratio"]),
        ([["abc"], ["ab", " "]], ["empty_side"]),
        ([["abc"], ["ab", "a" * 11]], ["too_long"]),
        ([["a" * 10]], []),  # a single side has no ratio
        ([["abc"], []], []),  # an optional side is missing
        ([], []),
        ([["a"], ["ab"], ["abcd"]], ["length_ratio"]),
    ],
)
def test_sides_with_several_texts_or_none(sides, names):
    assert affected(sides[:-1], sides[-1:], **CHECKS) == names


def test_slow_checks_come_last():
    checks = DataChecksConfig.model_validate({"language": {"languages": {"source": "en"}}})
    assert list(checks.row_checks)[-2:] == ["script", "language"]


def test_checks_that_cannot_drop():
    fixed = {name for name, check in DataChecksConfig().data_checks.items() if not check.can_drop()}
    assert fixed == {"target_overlap", "normalization"}


def test_a_check_that_judges_no_row_cannot_be_created():
    class Incomplete(RowCheck):
        """A check without `affects`."""

    with pytest.raises(TypeError, match="affects"):
        Incomplete()
