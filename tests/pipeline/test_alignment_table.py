from __future__ import annotations

import pytest

from pipeline.alignment_table import cells, draw, shade

SOURCE = ["▁Friday", ",", "▁20"]
TARGET = ["20", "26-"]
WEIGHTS = [[0.0, 0.05, 0.95], [0.5, 0.3, 0.2]]


def test_matrix_has_a_column_a_source_piece_and_a_row_a_target_piece():
    assert draw(SOURCE, TARGET, WEIGHTS) == [
        "     ▁Friday ,  ▁20",
        " 20             ███",
        "26-  ▒▒▒▒▒▒▒ ░░ ░░░",
    ]


def test_too_wide_matrix_becomes_the_best_pieces_with_weights():
    lines = draw(SOURCE * 20, ["20"], [[0.01] * 59 + [0.41]], width=60)
    assert lines == ["20  ▁20 (60) 0.41"]
    lines = draw(SOURCE * 20, ["20"], [[0.5, 0.3, 0.1, 0.1] + [0.0] * 56], width=60)
    assert lines == ["20  ▁Friday (1) 0.50, , (2) 0.30, ▁20 (3) 0.10"]


def test_wide_characters_keep_the_columns():
    lines = draw(["二〇二六", "年"], ["2026", "-"], [[1.0, 0.0], [0.0, 1.0]])
    assert {cells(line) for line in (lines[0], lines[2])} == {6 + 8 + 1 + 2}
    assert lines[1] == "2026  ████████"


def test_line_breaks_and_long_pieces_do_not_break_the_table():
    lines = draw(["a\nb", "x" * 30], ["y" * 50], [[0.5, 0.5]])
    assert len(lines) == 2
    assert "a·b" in lines[0]
    assert "xxxxxxxxx…" in lines[0]


def test_empty_sides_have_no_table():
    assert draw([], ["a"], [[]]) == []
    assert draw(["a"], [], []) == []


@pytest.mark.parametrize(("weight", "sign"), [(-1, " "), (0, " "), (0.3, "░"), (1, "█"), (2, "█")])
def test_shade(weight, sign):
    assert shade(weight) == sign


def test_ascii():
    assert draw(["a"], ["b"], [[1.0]], ascii_only=True)[1] == "b  ##"


def test_right_to_left_pieces_stay_in_their_columns():
    lines = draw(["ا", "ل", "2"], ["a"], [[0, 1, 0]])
    # A mark on both sides of each, so that a terminal has no run to turn around; it takes no room.
    assert lines[0] == "   \u200eا\u200e  \u200eل\u200e  2"
    assert lines[1].index("█") == 6
    narrow = draw(["ا"] * 40, ["a"], [[1.0] + [0.0] * 39], width=40)
    assert narrow == ["a  \u200eا\u200e (1) 1.00"]


def test_mark_without_its_letter_gets_a_circle():
    lines = draw(["व", "ं"], ["a"], [[0, 1]])
    assert "◌ं" in lines[0]
    assert lines[1].index("█") == 6


def test_a_model_without_attention_says_so():
    assert draw(SOURCE, TARGET, [[0.0] * len(SOURCE)] * len(TARGET)) == [
        "(this model has no attention: it looks nowhere)"
    ]
