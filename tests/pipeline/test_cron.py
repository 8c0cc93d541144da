"""Cron expressions with five fields become Kubeflow's with six."""

import pytest

from components.errors import UserError
from pipeline.cron import six_fields


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("0 3 * * *", "0 0 3 * * *"),
        ("*/15 * * * *", "0 */15 * * * *"),
        ("30 0 3 * * *", "30 0 3 * * *"),  # six fields have their second
        ("0 9 ? * 2-6", "0 0 9 ? * 2-6"),
        ("0 3 1,15 * *", "0 0 3 1,15 * *"),
        ("0 3 * jan-MAR Mon", "0 0 3 * 1-3 1"),
        ("0 3 * * 7", "0 0 3 * * 0"),  # Kubeflow's Sunday is 0 alone
        ("0 3 * * 5-7", "0 0 3 * * 5,6,0"),
        ("0 3 * * 1-7/2", "0 0 3 * * 1,3,5,0"),
        ("0 3 * * 0-7", "0 0 3 * * 0,1,2,3,4,5,6"),
        (" 0  3 * * * ", "0 0 3 * * *"),
        ("@daily", "0 0 0 * * *"),
        ("@Weekly", "0 0 0 * * 0"),
        ("@midnight", "0 0 0 * * *"),
        ("@annually", "0 0 0 1 1 *"),
        ("0 3 * * mon-sun", "0 0 3 * * 1,2,3,4,5,6,0"),
        ("0 3 * * sat-sun", "0 0 3 * * 6,0"),
        ("0 3 * * sun-tue", "0 0 3 * * 0-2"),
        ("0 3 * * 0-0", "0 0 3 * * 0-0"),
        ("0 3 29 2 *", "0 0 3 29 2 *"),
        ("0 3 31 1,2 *", "0 0 3 31 1,2 *"),
        ("0 3 31 2 1", "0 0 3 31 2 1"),  # either of the days
        ("1-5/9 3 * * *", "0 1 3 * * *"),  # a step out of its range leaves the first
        ("5/58 3 * * *", "0 5 3 * * *"),
        ("0 3 1-3/2 * *", "0 0 3 1-3/2 * *"),
        ("*/015 3 * * *", "0 */15 3 * * *"),
        ("*/59 */23 */30 */11 */6", "0 */59 */23 */30 */11 */6"),
    ],
)
def test_translated(given, expected):
    assert six_fields(given) == expected


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "0 fields"),
        ("daily", "1 field"),
        ("@reboot", "1 field"),
        ("0 3 * *", "4 fields"),
        ("0 0 0 3 * * *", "7 fields"),
        ("60 3 * * *", r"'60' is no minute \(0 to 59\)"),
        ("0 24 * * *", "no hour"),
        ("0 3 0 * *", "no day of the month"),
        ("0 3 * 13 *", "no month"),
        ("0 3 * * 8", "no day of the week"),
        ("0 3 * * lun", "'lun' is no day of the week"),
        ("0 3 * * 5-1", "must rise"),
        ("*/0 3 * * *", "no minute"),
        ("*/x 3 * * *", "no minute"),
        ("1, 3 * * *", "no minute"),
        ("-5 3 * * *", "no minute"),
        ("*/70 3 * * *", "no minute"),
        ("*/60 3 * * *", "no minute"),
        ("0 */24 * * *", "no hour"),
        ("0 3 */31 * *", "a step of the day of the month is at most 30"),
        ("0 3 * */12 *", "a step of the month is at most 11"),
        ("*/\u0663 3 * * *", "no minute"),
        ("\u0663 3 * * *", "no minute"),
        ("0 3 31 2 *", "never comes"),
        ("0 3 31 4,6 *", "never comes"),
    ],
)
def test_refused(given, told):
    with pytest.raises(UserError, match=told) as caught:
        six_fields(given)
    assert caught.value.where == "--cron"
    assert "0 3 * * 1-5" in caught.value.remedy


@pytest.mark.parametrize("given", ["* * * * * *", "0,30 * * * * *", "*/20 0 3 * * *"])
def test_several_runs_a_minute(given):
    assert six_fields(given) == given
    with pytest.raises(UserError, match="would start several runs a minute"):
        six_fields(given, often=False)
