"""What a trial is judged by: the weights that its training would export."""

import math

import pytest

from components.errors import UserError
from components.trainer.checkpoint import Position
from components.tuner.trial import judge

HISTORY = [
    {"step": 10, "epoch": 1, "seconds": 3.0, "loss": 2.0, "bleu": 5.0},
    {"step": 20, "epoch": 2, "seconds": 6.0, "loss": 1.0, "bleu": 7.0},
    {"step": 30, "epoch": 3, "seconds": 9.0, "loss": 1.5, "bleu": 9.0},
]


def position(**changes):
    fields = {"history": HISTORY, "best_step": 20, "epoch": 3, "seconds": 9.04}
    return Position(**{**fields, "finished": "max_epochs: 3", **changes})


def test_those_of_the_best_evaluation():
    found = judge(position(), "bleu")
    assert (found.score, found.step, found.epochs) == (7.0, 20, 3)
    assert found.measures == {"loss": 1.0, "bleu": 7.0}
    assert (found.seconds, found.finished, found.state) == (9.0, "max_epochs: 3", "done")


def test_their_average_where_that_is_exported():
    found = judge(position(averaged={"steps": [10, 20], "loss": 0.8, "bleu": 8.0}), "loss")
    assert found.score == 0.8
    assert found.measures == {"loss": 0.8, "bleu": 8.0}


@pytest.mark.parametrize(
    "changes",
    [{"best_step": 0}, {"history": [{**HISTORY[1], "bleu": math.nan}]}, {"history": []}],
)
def test_without_a_number_it_has_failed(changes):
    with pytest.raises(UserError, match="no evaluation has given a number for bleu"):
        judge(position(**changes), "bleu")
