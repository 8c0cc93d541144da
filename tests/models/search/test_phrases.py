"""Lexical constraints against exhaustive search, and what they never change."""

import numpy as np
import pytest
from hypothesis import settings
from keras import ops

from regard.models.search import BeamSearch
from regard.models.search.base import MIN_SCORE
from regard.models.search.logits_processor import LogitsProcessor
from regard.models.search.phrases import PhraseCandidates, Phrases
from regard.models.vocabulary import EOS, PAD
from tests.models.search.test_beam import penalised
from tests.models.search.toy import Toy, arrays, targets_of
from tests.tolerances import assert_close, close_to

TOY = Toy(scale=1.5)
# Random models of a narrow beam, each in a search of seconds.
SEEDS = 3 if settings.get_current_profile_name() == "thorough" else 1
# The tokens of the toy's vocabulary are 1 (UNK), 4, 5 and 6.
PHRASES = {
    "none": [],
    "one token": [[5]],
    "a pair": [[6, 4]],
    "twice the same token": [[5, 5]],
    "two phrases": [[4], [6]],
    "a start of its own": [[5, 5, 6]],
    "all room": [[4, 5], [6, 6]],
}
OVERLAPPING = [[[4, 5], [5, 6]], [[6], [6]], [[4, 5, 6], [5]]]


def padded(*rows):
    """Phrases of every row as one array; one row stands for three equal ones."""
    rows = rows * 3 if len(rows) == 1 else rows
    slots = [[token for phrase in row for token in (*phrase, EOS)] for row in rows]
    result = np.full((len(rows), max(map(len, slots))), PAD, "int32")
    for row, tokens in zip(result, slots, strict=True):
        row[: len(tokens)] = tokens
    return result


def search_all(search, toy, phrases, limits):
    """One search of the three rows of a toy with each list of phrases.

    Returns:
        The hypotheses, and the list of phrases, the row of the toy and the limit of each row.
    """
    phrases_of_rows = [every for every in phrases for _ in range(3)]
    toy_rows = np.tile(np.arange(3), len(phrases))
    limits = np.tile(limits, len(phrases))
    result = arrays(search(toy.step, toy.state(toy_rows), limits, phrases=padded(*phrases_of_rows)))
    return result, list(zip(phrases_of_rows, toy_rows, limits, strict=True))


def contains(target, phrase):
    return any(list(target[start : start + len(phrase)]) == phrase for start in range(len(target)))


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (0.6, 0.5)])
def test_a_wide_beam_is_exhaustive(alpha, beta):
    limit = 5
    search = BeamSearch(4**4 + 20, alpha, beta, n_best=3)
    every = [
        {target: penalised(TOY, row, target, alpha, beta) for target in TOY.targets(limit)}
        for row in range(3)
    ]
    result, rows = search_all(search, TOY, list(PHRASES.values()), np.full(3, limit))
    for index, (phrases, toy_row, _) in enumerate(rows):
        expected = {
            target: scores
            for target, scores in every[toy_row].items()
            if all(contains(target, phrase) for phrase in phrases)
        }
        ranked = sorted(expected, key=lambda target: -expected[target][0])[:3]
        assert targets_of(result, index) == ranked
        for rank, target in enumerate(ranked):
            score, log_prob = expected[target]
            assert result.scores[index, rank] == close_to(score, roundings=1000)
            assert result.log_probabilities[index, rank] == close_to(log_prob, roundings=1000)


def test_phrases_may_overlap():
    """Only near its limit, a hypothesis must have room for phrases one after the other."""
    search = BeamSearch(4**5, 0.6, n_best=1)
    every = [
        {target: penalised(TOY, row, target, 0.6, 0.0)[0] for target in TOY.targets(5)}
        for row in range(3)
    ]
    result, rows = search_all(search, TOY, OVERLAPPING, np.full(3, 6))
    for index, (phrases, toy_row, _) in enumerate(rows):
        best = max(
            score
            for target, score in every[toy_row].items()
            if all(contains(target, phrase) for phrase in phrases)
        )
        (target,) = targets_of(result, index)
        assert all(contains(target, phrase) for phrase in phrases)
        assert result.scores[index, 0] >= best - 1e-4


@pytest.mark.parametrize("size", [1, 4])
def test_a_narrow_beam_always_satisfies_them(size):
    phrases = [*PHRASES.values(), *OVERLAPPING]
    for seed in range(SEEDS):
        toy = Toy(scale=2.5, seed=seed)
        result, rows = search_all(BeamSearch(size), toy, phrases, np.array([5, 8, 12]))
        for index, (expected, _, limit) in enumerate(rows):
            targets = targets_of(result, index)
            assert targets
            for target in targets:
                assert len(target) <= limit
                assert all(contains(target, phrase) for phrase in expected)


def test_rows_have_their_own_phrases():
    """A row equals its result alone, whatever the other rows of the batch contain."""
    rows = [[[5]], [[4, 6], [5]], [[1, 4, 5]]]
    search, limits = BeamSearch(4), np.array([6, 7, 9])
    batched = arrays(search(TOY.step, TOY.state(), limits, phrases=padded(*rows)))
    for row in range(3):
        alone = arrays(
            search(
                TOY.step,
                TOY.state([row]),
                limits[row : row + 1],
                phrases=padded(*[rows[row]] * 3)[:1],
            )
        )
        assert targets_of(batched, row) == targets_of(alone, 0)
        assert_close(batched.scores[row], alone.scores[0], roundings=1000)


def test_without_phrases_nothing_changes():
    limits = np.array([3, 8, 6])
    search = BeamSearch(3, 0.6)
    plain = arrays(search(TOY.step, TOY.state(), limits))
    empty = arrays(search(TOY.step, TOY.state(), limits, phrases=padded([], [[5]], [])))
    for row in (0, 2):
        assert targets_of(empty, row) == targets_of(plain, row)
        assert_close(empty.scores[row], plain.scores[row], roundings=1000)


def test_a_prefix_may_cover_a_phrase():
    prefix, limits = np.array([[4, 5], [6, 0], [0, 0]]), np.full(3, 7)
    phrases = padded([[5, 6]])
    result = arrays(
        BeamSearch(200, 0.0, n_best=1)(
            TOY.step, TOY.state(), limits, prefix=prefix, phrases=phrases
        )
    )
    for row, start in enumerate(([4, 5], [6], [])):
        (target,) = targets_of(result, row)
        assert list(target[: len(start)]) == start
        assert contains(target, [5, 6])


def test_a_phrase_may_repeat_an_ngram():
    search = BeamSearch(3, no_repeat_ngram_size=1)
    result = arrays(search(TOY.step, TOY.state(), np.full(3, 6), phrases=padded([[5, 5, 5]])))
    for row in range(3):
        assert all(contains(target, [5, 5, 5]) for target in targets_of(result, row))


def allowed_tokens(phrases, limit, position):
    """The tokens that may follow a prefix that has matched nothing; only the lengths count."""
    tokens = Phrases(ops.convert_to_tensor(padded(phrases)[:1]))
    limits = ops.convert_to_tensor([limit], dtype="int32")
    candidates = PhraseCandidates(
        tokens,
        tokens.state(1),
        limits,
        position,
        processor=LogitsProcessor({"limits": limits}),
        logits=ops.zeros((1, TOY.vocabulary)),
        ids=ops.zeros((1, limit), dtype="int32"),
        prefix_scores=ops.zeros((1, 1)),
    )
    columns = ops.arange(candidates.columns, dtype="int32")[None]
    scores = ops.convert_to_numpy(candidates.scores[0, 0])
    names = ops.convert_to_numpy(candidates.tokens(columns)[0])
    return {int(token) for token in names[scores > MIN_SCORE / 2]}


def test_only_the_rest_of_the_phrases_may_follow_when_no_room_is_left():
    """Of five tokens with EOS, the last two before EOS are those of the phrase."""
    assert allowed_tokens([[5, 6]], limit=5, position=1) > {1, 5}
    assert allowed_tokens([[5, 6]], limit=5, position=2) == {5}
    assert allowed_tokens([[5], [6]], limit=5, position=2) == {5, 6}
