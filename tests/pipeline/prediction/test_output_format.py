import pytest
from rich.cells import cell_len

from regard.pipeline.prediction.output_format import draw_table, shade

SOURCE = ["▁Friday", ",", "▁20"]
TARGET = ["20", "26-"]
WEIGHTS = [[0.0, 0.05, 0.95], [0.5, 0.3, 0.2]]


def test_a_matrix_of_source_and_target_tokens():
    assert draw_table(SOURCE, TARGET, WEIGHTS) == [
        "     ▁Friday ,  ▁20",
        " 20             ███",
        "26-  ▒▒▒▒▒▒▒ ░░ ░░░",
    ]


def test_a_matrix_that_is_too_wide_becomes_the_top_tokens():
    lines = draw_table(SOURCE * 20, ["20"], [[0.01] * 59 + [0.41]], width=60)
    assert lines == ["20  ▁20 (60) 0.41"]
    lines = draw_table(SOURCE * 20, ["20"], [[0.5, 0.3, 0.1, 0.1] + [0.0] * 56], width=60)
    assert lines == ["20  ▁Friday (1) 0.50, , (2) 0.30, ▁20 (3) 0.10"]


def test_wide_characters_keep_the_columns():
    lines = draw_table(["二〇二六", "年"], ["2026", "-"], [[1.0, 0.0], [0.0, 1.0]])
    assert {cell_len(line) for line in (lines[0], lines[2])} == {6 + 8 + 1 + 2}
    assert lines[1] == "2026  ████████"


def test_line_breaks_and_long_tokens():
    lines = draw_table(["a\nb", "x" * 30], ["y" * 50], [[0.5, 0.5]])
    assert len(lines) == 2
    assert "a·b" in lines[0]
    assert "xxxxxxxxx…" in lines[0]


def test_empty_sides_have_no_table():
    assert draw_table([], ["a"], [[]]) == []
    assert draw_table(["a"], [], []) == []


@pytest.mark.parametrize(("weight", "sign"), [(-1, " "), (0, " "), (0.3, "░"), (1, "█"), (2, "█")])
def test_shade(weight, sign):
    assert shade(weight) == sign


def test_right_to_left_tokens_stay_in_their_columns():
    lines = draw_table(["ا", "ل", "2"], ["a"], [[0, 1, 0]])
    # Marks of no width keep a terminal from reversing the sequence.
    assert lines[0] == "   \u200eا\u200e  \u200eل\u200e  2"
    assert lines[1].index("█") == 6
    narrow = draw_table(["ا"] * 40, ["a"], [[1.0] + [0.0] * 39], width=40)
    assert narrow == ["a  \u200eا\u200e (1) 1.00"]


def test_a_combining_mark_gets_a_circle():
    lines = draw_table(["व", "ं"], ["a"], [[0, 1]])
    assert "◌ं" in lines[0]
    assert lines[1].index("█") == 6


def test_a_model_without_attention_says_so():
    assert draw_table(SOURCE, TARGET, [[0.0] * len(SOURCE)] * len(TARGET)) == [
        "(this model has no attention)"
    ]
