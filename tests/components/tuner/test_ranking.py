"""Trials as a table."""

import csv
import io

from components.tuner.ranking import as_csv, best_of, figure_of, ranked, values_text

ROWS = [
    {
        "trial": number,
        "continues": None,
        "state": "done",
        "values": {"training.learning_rate": 0.1 * number, "model.score": {"type": "dot"}},
        "score": score,
        "measures": {"loss": score},
        "step": 5,
        "epochs": 1,
        "seconds": 2.0,
        "finished": "max_epochs: 1",
        "error": "",
    }
    for number, score in ((1, 2.0), (2, 1.0), (3, 1.0))
]
FAILED = {**ROWS[0], "trial": 4, "state": "failed", "score": None, "measures": {}, "error": "a, b"}


def test_the_best_is_first_and_what_failed_last():
    rows = [FAILED, *ROWS]
    assert [row["trial"] for row in ranked(rows, "min")] == [2, 3, 1, 4]
    assert [row["trial"] for row in ranked(rows, "max")] == [1, 2, 3, 4]
    assert best_of(rows, "min")["trial"] == 2


def test_one_that_runs_has_no_place_yet():
    running = {"trial": 5, "state": "running", "values": {}}
    assert ranked([running, *ROWS], "min")[-1] == running


def test_csv_is_one_line_a_trial():
    table = list(csv.DictReader(io.StringIO(as_csv([*ROWS, FAILED], "min"))))
    assert [row["trial"] for row in table] == ["2", "3", "1", "4"]
    assert table[0]["training.learning_rate"] == "0.2"
    assert table[0]["model.score"] == '{"type": "dot"}'
    assert table[0]["loss"] == table[0]["score"] == "1.0"
    assert (table[3]["state"], table[3]["score"], table[3]["error"]) == ("failed", "", "a, b")


def test_figures_and_values_in_words():
    assert figure_of("loss", 1.23456) == "loss 1.2346"
    assert figure_of("bleu", 23.1) == "BLEU 23.10"
    assert values_text({"a": 0.5, "b": None, "c": "soft"}) == "a 0.5, b null, c soft"
