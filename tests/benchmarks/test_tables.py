"""Tables and ratios."""

from benchmarks.tables import markdown, ratio


def test_names_stand_left_and_figures_right():
    lines = markdown(["system", "a", "b"], [["x", "1", "2"]]).splitlines()
    assert lines == ["| system | a | b |", "| --- | ---: | ---: |", "| x | 1 | 2 |"]


def test_a_ratio_is_of_what_was_measured_in_the_same_round():
    # Of the medians, 10 and 10, it would be 1.
    assert ratio([10.0, 30.0, 8.0], [10.0, 10.0, 4.0]) == 2.0
