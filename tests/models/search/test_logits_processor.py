"""Which tokens may come, against the same written with loops."""

import keras
import numpy as np
import pytest

from regard.models.search import BeamSearch, GreedySearch
from regard.models.search.base import MIN_SCORE
from regard.models.search.logits_processor import LogitsProcessor
from regard.models.vocabulary import BOS, EOS, PAD
from tests.models.search.toy import Toy, arrays, targets_of
from tests.tolerances import assert_close

VOCABULARY = 9


def allowed(ids, position, hypotheses=1, **settings):
    """The tokens that may come behind the first ``position`` of each row."""
    names = settings.keys() & {"limits", "minimums", "prefix"}
    constraints = {"limits": np.full(len(ids), 100)} | {name: settings.pop(name) for name in names}
    process = LogitsProcessor(constraints, hypotheses, **settings)
    logits = np.random.default_rng(0).normal(size=(len(ids), VOCABULARY)).astype("float32")
    scores = process(logits, np.array(ids, "int32"), position)
    scores = keras.ops.convert_to_numpy(scores)
    return [set(np.flatnonzero(row > MIN_SCORE / 2).tolist()) for row in scores]


@pytest.mark.parametrize("run", [1, 2, 3, 4])
def test_a_run_that_would_repeat_is_forbidden(run):
    random = np.random.default_rng(run)
    ids = random.integers(4, 7, (20, 10))
    for position in range(10):
        here = np.where(np.arange(10) < position, ids, PAD)
        for row, result in zip(ids, allowed(here, position, no_repeat_ngram_size=run), strict=True):
            past = row[:position].tolist()
            runs = {tuple(past[i : i + run]) for i in range(position - run + 1)}
            last = past[len(past) - run + 1 :] if run > 1 else []
            expected = {
                token
                for token in range(VOCABULARY)
                if token not in (PAD, BOS)
                and (token == EOS or len(last) < run - 1 or (*last, token) not in runs)
            }
            assert result == expected


def test_plain_rules():
    real = set(range(VOCABULARY)) - {PAD, BOS}
    ids = np.zeros((3, 4), "int32")
    settings = {"limits": np.array([1, 4, 4]), "minimums": np.array([3, 1, 3])}
    assert allowed(ids, 0, **settings) == [{EOS}, real, real - {EOS}]
    assert allowed(ids + 5, 2, **settings) == [{EOS}, real, real]
    assert allowed(ids + 5, 3, **settings) == [{EOS}] * 3


def test_of_rules_that_contradict_each_other_the_stronger_holds():
    ids = np.array([[4, 4, 0, 0, 0]] * 3, "int32")
    prefix = np.array([[4, 4, 4], [4, 4, PAD], [4, 4, EOS]])
    # No token twice, but the prefix says so; a minimum, but the prefix ends; a limit over all.
    settings = {"prefix": prefix, "no_repeat_ngram_size": 1, "minimums": np.full(3, 5)}
    rest = set(range(VOCABULARY)) - {PAD, BOS, EOS, 4}
    assert allowed(ids, 2, **settings) == [{4}, rest, {EOS}]
    assert allowed(ids, 2, limits=np.full(3, 3), **settings) == [{EOS}] * 3


def test_what_cannot_go_on_may_end_before_its_minimum():
    every = np.array([[1, 4, 5, 6, 7, 8, 0]], "int32")
    some = np.array([[1, 4, 5, 6, 7, 7, 0]], "int32")
    settings = {"no_repeat_ngram_size": 1, "minimums": np.array([8])}
    assert allowed(every, 6, **settings) == [{EOS}]
    assert allowed(some, 6, **settings) == [{8}]


def test_rules_are_those_of_the_row_of_each_hypothesis():
    settings = {"limits": np.array([1, 9]), "prefix": np.array([[PAD], [5]])}
    assert (
        allowed(np.zeros((6, 2), "int32"), 0, hypotheses=3, **settings) == [{EOS}] * 3 + [{5}] * 3
    )


def test_the_scores_of_allowed_tokens_are_log_probabilities():
    logits = np.random.default_rng(3).normal(size=(2, VOCABULARY)) * 3
    process = LogitsProcessor({"limits": np.full(2, 9)})
    scores = process(logits.astype("float32"), np.array([[4, 5, 4, 0], [8, 0, 0, 0]]), 3)
    expected = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    tokens = [token for token in range(VOCABULARY) if token not in (PAD, BOS)]
    scores = keras.ops.convert_to_numpy(scores)
    assert_close(scores[:, tokens], expected[:, tokens])


@pytest.mark.parametrize("run", [1, 2, 3])
@pytest.mark.parametrize("beam", [False, True])
def test_no_hypothesis_repeats_a_run(run, beam):
    toy = Toy(seed=3, scale=0.3)
    penalties = {"no_repeat_ngram_size": run}
    search = BeamSearch(4, 2.0, **penalties) if beam else GreedySearch(**penalties)
    result = arrays(search(toy.step, toy.state(), np.full(3, 20), minimums=np.full(3, 12)))
    max_length = 0
    for row in range(3):
        for target in targets_of(result, row):
            runs = [target[i : i + run] for i in range(len(target) - run + 1)]
            assert len(runs) == len(set(runs))
            max_length = max(max_length, len(target))
    # All four tokens once and the end; runs of more tokens are enough for the minimum.
    assert max_length == 5 if run == 1 else max_length >= 12


def test_bfloat16_logits_are_taken_in_float32():
    logits = keras.ops.cast(np.array([[0.0, 1.0, 2.0, 3.0, 1.5]]), "bfloat16")
    scores = LogitsProcessor({"limits": np.array([5])})(logits, np.zeros((1, 3), "int32"), 0)
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"
    expected = np.exp([1.0, 3.0, 1.5]) / np.exp([0.0, 1.0, 2.0, 3.0, 1.5]).sum()
    allowed_scores = keras.ops.convert_to_numpy(scores)[scores > MIN_SCORE / 2]
    assert_close(np.exp(allowed_scores), expected)
