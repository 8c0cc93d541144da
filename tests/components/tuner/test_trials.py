"""Oracle and journal: a search that is started again is the search that was never stopped."""

import json

import pytest

from components.tuner import oracles
from components.tuner.journal import DONE, FAILED, Journal, Result
from components.tuner.sizes import hyperband_epochs, hyperband_trials
from components.tuner.space import Dimension, Space
from components.tuner.trials import Trials
from pipeline.config.tune import LAST_SEED

SPACE = Space(
    (
        Dimension("training.learning_rate", 1e-4, 1e-1, log=True),
        Dimension("model.layers", choices=[1, 2, 3]),
    )
)


def settings(algorithm, **changes):
    plain = {"algorithm": algorithm, "objective": "loss", "direction": "min", "seed": 3}
    sizes = {"trials": 9, "epochs": 4, "factor": 2, "iterations": 1}
    return {**plain, **sizes, **changes}


@pytest.fixture
def start(tmp_path):
    """Begins a search, or begins it again; KerasTuner's own files are new each time."""
    count = iter(range(1000))

    def make(tune, folder="search"):
        oracle = oracles.make(tune, SPACE)
        oracle._set_project_dir(str(tmp_path / f"scratch{next(count)}"), "oracle")
        return Trials(oracle, SPACE, Journal(tmp_path / folder / "journal.json"))

    return make


def loss(values):
    """Best at a rate of 0.01 and two layers."""
    rate, layers = values["training.learning_rate"], values["model.layers"]
    return abs(rate - 0.01) * 10 + abs(layers - 2) + 1.0


def run(trials, ends=1000):
    """Trials one by one, until so many have ended; the interrupted ones first."""
    waiting = list(trials.waiting)
    for _ in range(ends):
        number = waiting.pop(0) if waiting else trials.begin()
        if number is None:
            break
        result = Result(DONE, score=loss(SPACE.values(trials.drawn(number))))
        trials.end(number, result)
    return [{**row, "score": row["score"] and round(row["score"], 6)} for row in trials.rows()]


@pytest.mark.parametrize("algorithm", ["random", "bayesian", "hyperband"])
def test_stopped_after_each_trial_it_is_the_same_search(start, algorithm):
    tune = settings(algorithm)
    whole = run(start(tune, "whole"))
    assert len(whole) == (9 if algorithm != "hyperband" else hyperband_trials(4, 2, 1))
    for _ in range(3):
        trials = start(tune)
        run(trials, ends=2)
        trials.begin()  # killed while it runs
    assert run(start(tune)) == whole
    assert run(start(tune)) == whole  # and once more, when nothing is left


def test_another_seed_is_another_search(start):
    one, other = (run(start(settings("random", seed=seed), str(seed))) for seed in (0, 1))
    assert one != other
    assert run(start(settings("random", seed=0), "again")) == one


@pytest.mark.parametrize("algorithm", ["random", "bayesian", "hyperband"])
def test_the_last_seed_that_a_file_can_have(start, algorithm):
    rows = run(start(settings(algorithm, seed=LAST_SEED)))
    assert len(rows) >= 9


def test_more_trials_go_on_with_those_that_are_there(start):
    few = run(start(settings("random", trials=4)))
    more = run(start(settings("random", trials=7)))
    assert len(few) == 4
    assert more[:4] == few
    assert len(more) == 7
    # Fewer than there are: nothing is lost, and nothing is new.
    assert run(start(settings("random", trials=2))) == more


def test_bayesian_search_comes_near(start):
    rows = run(start(settings("bayesian", trials=14)))
    assert min(row["score"] for row in rows) < 1.2


def test_hyperband_lets_the_best_go_on(start):
    trials = start(settings("hyperband"))
    rows = run(trials)
    by_number = {row["trial"]: row for row in rows}
    later = [row for row in rows if row["continues"]]
    assert later
    for row in later:
        assert row["values"] == by_number[row["continues"]]["values"]
    epochs = [trials.drawn(number)[oracles.EPOCHS] for number in range(len(trials))]
    added = sum(
        epochs[row["trial"] - 1] - (epochs[row["continues"] - 1] if row["continues"] else 0)
        for row in rows
    )
    assert max(epochs) == 4
    assert added == hyperband_epochs(4, 2, 1)


def test_failed_ones_at_the_end_are_tried_again(start):
    tune = settings("random")
    trials = start(tune)
    run(trials, ends=1)
    for _ in range(2):
        trials.end(trials.begin(), Result(FAILED, error="no memory"))
    assert [(number, result.error) for number, result in trials.failures()] == [
        (1, "no memory"),
        (2, "no memory"),
    ]
    again = start(tune)
    assert (again.waiting, again.forgiven, again.failures()) == ([1, 2], 2, [])
    assert run(again) == run(start(tune, "whole"))


def test_one_that_failed_before_a_success_stays_so(start):
    tune = settings("random")
    trials = start(tune)
    trials.end(trials.begin(), Result(FAILED, error="the loss is nan"))
    run(trials, ends=1)
    again = start(tune)
    assert again.waiting == []
    assert [row["state"] for row in again.rows()] == ["failed", "done"]


def test_the_highest_is_the_best_where_more_is_better(start):
    tune = settings("hyperband", objective="bleu", direction="max")
    trials = start(tune)
    number = trials.begin()
    scores = {}
    while number is not None:
        scores[number] = 100 - loss(SPACE.values(trials.drawn(number)))
        trials.end(number, Result(DONE, score=scores[number]))
        number = trials.begin()
    first = trials.oracle.get_best_trials(1)[0]
    assert first.score == max(scores.values())


def test_no_more_than_there_are_different_values(tmp_path):
    space = Space((Dimension("model.layers", choices=[1, 2, 3]),))
    oracle = oracles.make(settings("random"), space)
    oracle._set_project_dir(str(tmp_path), "oracle")
    trials = Trials(oracle, space, Journal(tmp_path / "journal.json"))
    while (number := trials.begin()) is not None:
        trials.end(number, Result(DONE, score=1.0))
    assert trials.exhausted
    assert sorted(row["values"]["model.layers"] for row in trials.rows()) == [1, 2, 3]


def test_the_journal_is_plain_json(start, tmp_path):
    run(start(settings("random")), ends=1)
    events = json.loads((tmp_path / "search/journal.json").read_text())
    assert [event["event"] for event in events] == ["begin", "end"]
