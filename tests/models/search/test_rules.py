"""Which pieces may come, against the same written with loops."""

import keras
import numpy as np
import pytest

from models.search import BeamSearch, GreedySearch
from models.search.base import IMPOSSIBLE
from models.search.rules import Rules
from models.vocabulary import BOS, EOS, PAD
from tests.models.search.toy import Toy, arrays, targets_of

PIECES = 9


def allowed(ids, position, **settings):
    """The pieces that may come behind the first ``position`` of each row."""
    limits = settings.pop("limits", np.full(len(ids), 100))
    rules = Rules(limits, **settings)
    logits = np.random.default_rng(0).normal(size=(len(ids), PIECES)).astype("float32")
    _, worth = rules(logits, np.array(ids, "int32"), position)
    worth = keras.ops.convert_to_numpy(worth)
    return [set(np.flatnonzero(row > IMPOSSIBLE / 2).tolist()) for row in worth]


@pytest.mark.parametrize("run", [1, 2, 3, 4])
def test_a_run_that_would_repeat_is_forbidden(run):
    random = np.random.default_rng(run)
    ids = random.integers(4, 7, (20, 10))
    for position in range(10):
        here = np.where(np.arange(10) < position, ids, PAD)
        for row, found in zip(ids, allowed(here, position, no_repeat_ngram=run), strict=True):
            past = row[:position].tolist()
            runs = {tuple(past[i : i + run]) for i in range(position - run + 1)}
            last = past[len(past) - run + 1 :] if run > 1 else []
            expected = {
                piece
                for piece in range(PIECES)
                if piece not in (PAD, BOS)
                and (piece == EOS or len(last) < run - 1 or (*last, piece) not in runs)
            }
            assert found == expected


def test_plain_rules():
    real = set(range(PIECES)) - {PAD, BOS}
    ids = np.zeros((3, 4), "int32")
    settings = {"limits": np.array([1, 4, 4]), "minimums": np.array([3, 1, 3])}
    assert allowed(ids, 0, **settings) == [{EOS}, real, real - {EOS}]
    assert allowed(ids + 5, 2, **settings) == [{EOS}, real, real]
    assert allowed(ids + 5, 3, **settings) == [{EOS}] * 3


def test_of_rules_that_contradict_each_other_the_stronger_holds():
    ids = np.array([[4, 4, 0, 0, 0]] * 3, "int32")
    prefix = np.array([[4, 4, 4], [4, 4, PAD], [4, 4, EOS]])
    # No piece twice, but the prefix says so; a minimum, but the prefix ends; a limit over all.
    settings = {"prefix": prefix, "no_repeat_ngram": 1, "minimums": np.full(3, 5)}
    rest = set(range(PIECES)) - {PAD, BOS, EOS, 4}
    assert allowed(ids, 2, **settings) == [{4}, rest, {EOS}]
    assert allowed(ids, 2, limits=np.full(3, 3), **settings) == [{EOS}] * 3


def test_what_cannot_go_on_may_end_before_its_minimum():
    every = np.array([[1, 4, 5, 6, 7, 8, 0]], "int32")
    some = np.array([[1, 4, 5, 6, 7, 7, 0]], "int32")
    settings = {"no_repeat_ngram": 1, "minimums": np.array([8])}
    assert allowed(every, 6, **settings) == [{EOS}]
    assert allowed(some, 6, **settings) == [{8}]


def test_rules_are_those_of_the_row_of_each_hypothesis():
    settings = {"limits": np.array([1, 9]), "prefix": np.array([[PAD], [5]]), "hypotheses": 3}
    assert allowed(np.zeros((6, 2), "int32"), 0, **settings) == [{EOS}] * 3 + [{5}] * 3


@pytest.mark.parametrize("theta", [1.0, 1.3, 5.0])
def test_the_repetition_penalty_is_ctrls(theta):
    random = np.random.default_rng(3)
    logits = random.normal(size=(2, PIECES)) * 3
    ids = np.array([[4, 5, 4, 0], [8, 0, 0, 0]], "int32")
    own, worth = Rules(np.full(2, 9), repetition_penalty=theta)(logits.astype("float32"), ids, 3)
    expected = logits.copy()
    for row, pieces in enumerate([{4, 5}, {8}]):
        for piece in pieces:
            value = logits[row, piece]
            expected[row, piece] = value / theta if value > 0 else value * theta
    for found, x in ((own, logits), (worth, expected)):
        found = keras.ops.convert_to_numpy(found)
        logp = x - np.log(np.exp(x).sum(-1, keepdims=True))
        answers = [p for p in range(PIECES) if p not in (PAD, BOS)]
        np.testing.assert_allclose(found[:, answers], logp[:, answers], atol=1e-5)


@pytest.mark.parametrize("run", [1, 2, 3])
@pytest.mark.parametrize("beam", [False, True])
def test_no_hypothesis_repeats_a_run(run, beam):
    toy = Toy(seed=3, scale=0.3)
    penalties = {"no_repeat_ngram": run}
    search = BeamSearch(4, 2.0, **penalties) if beam else GreedySearch(**penalties)
    found = arrays(search(toy.step, toy.state(), np.full(3, 20), minimums=np.full(3, 12)))
    longest = 0
    for row in range(3):
        for target in targets_of(found, row):
            runs = [target[i : i + run] for i in range(len(target) - run + 1)]
            assert len(runs) == len(set(runs))
            longest = max(longest, len(target))
    # All four pieces once and the end; runs of more pieces are enough for the minimum.
    assert longest == 5 if run == 1 else longest >= 12


def test_bfloat16_logits_are_taken_in_float32():
    logits = keras.ops.cast(np.array([[0.0, 1.0, 2.0, 3.0, 1.5]]), "bfloat16")
    own, _ = Rules(np.array([5]))(logits, np.zeros((1, 3), "int32"), 0)
    assert keras.backend.standardize_dtype(own.dtype) == "float32"
    np.testing.assert_allclose(np.exp(own).sum(), 1.0, atol=1e-6)
