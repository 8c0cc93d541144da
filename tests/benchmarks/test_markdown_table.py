"""Tables and ratios."""

from benchmarks.markdown_table import format_table, median_ratio


def test_numbers_are_right_aligned():
    lines = format_table(["system", "a", "b"], [["x", "1", "2"]]).splitlines()
    assert lines == ["| system | a | b |", "| --- | ---: | ---: |", "| x | 1 | 2 |"]


def test_ratios_compare_values_of_the_same_round():
    # The ratio of the medians, 10 and 10, would be 1.
    assert median_ratio([10.0, 30.0, 8.0], [10.0, 10.0, 4.0]) == 2.0
