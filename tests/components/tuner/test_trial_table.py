"""The table of trials."""

from regard.components.tuner.trial_table import format_score, format_values, rank_trials


def test_rank_trials_puts_the_best_first_and_failed_last():
    rows = [{"trial": n, "score": score} for n, score in enumerate((2.0, 1.0, 1.0, None), start=1)]
    rows.insert(0, rows.pop())
    assert [row["trial"] for row in rank_trials(rows, "min")] == [2, 3, 1, 4]
    assert [row["trial"] for row in rank_trials(rows, "max")] == [1, 2, 3, 4]


def test_formatting_of_scores_and_values():
    assert format_score("loss", 1.23456) == "loss 1.2346"
    assert format_score("bleu", 23.1) == "BLEU 23.10"
    assert format_values({"a": 0.5, "b": None, "c": "soft"}) == "a 0.5, b null, c soft"
