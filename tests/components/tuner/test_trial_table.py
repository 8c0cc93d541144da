"""The table of trials."""

from regard.components.tuner.trial_table import format_score, format_values, rank_trials

ROWS = [
    {
        "trial": number,
        "continued_from": None,
        "state": "completed",
        "values": {"training.learning_rate": 0.1 * number, "model.score": {"type": "dot"}},
        "score": score,
        "metrics": {"loss": score},
        "step": 5,
        "epochs": 1,
        "seconds": 2.0,
        "stop_reason": "max_epochs: 1",
        "error": "",
    }
    for number, score in ((1, 2.0), (2, 1.0), (3, 1.0))
]
FAILED = {**ROWS[0], "trial": 4, "state": "failed", "score": None, "metrics": {}, "error": "a, b"}


def test_rank_trials_puts_the_best_first_and_failed_last():
    rows = [FAILED, *ROWS]
    assert [row["trial"] for row in rank_trials(rows, "min")] == [2, 3, 1, 4]
    assert [row["trial"] for row in rank_trials(rows, "max")] == [1, 2, 3, 4]


def test_formatting_of_scores_and_values():
    assert format_score("loss", 1.23456) == "loss 1.2346"
    assert format_score("bleu", 23.1) == "BLEU 23.10"
    assert format_values({"a": 0.5, "b": None, "c": "soft"}) == "a 0.5, b null, c soft"
