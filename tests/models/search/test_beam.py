"""The beam against exhaustive search, and against a beam of a few lines that stops nowhere."""

import keras
import numpy as np
import pytest

from regard.models.search import BeamSearch, GreedySearch
from regard.models.search.beam import MIN_COVERAGE, PRESENT_LENGTH
from regard.models.search.candidates import _flat_indices
from regard.models.vocabulary import BOS, EOS, PAD
from tests.models.search import reference
from tests.models.search.toy import Toy, arrays, targets_of
from tests.tolerances import assert_close, close_to

TOY = Toy()


def penalised(toy, row, target, alpha, beta, offset=5):
    """Wu et al. 2016, eq. 14, and the log-probability in it."""
    logp, alignments = toy.follow(row, target)
    total = sum(logp[t, token] for t, token in enumerate(target))
    attended = alignments.sum(0)[toy.mask[row]]
    coverage = np.log(np.clip(attended, MIN_COVERAGE, 1.0)).sum()
    return total / ((offset + len(target)) / (offset + 1)) ** alpha + beta * coverage, total


def plain_beam(toy, row, size, limit, alpha, beta, sufficient=np.inf, present_length=False):
    """All that a beam comes across until its limit or until enough have ended, the best first.

    With ``present_length``, also until ``size`` are better than each prefix if it ended now.
    """
    alive, completed = [((), 0.0)], []
    for length in range(1, limit + 1):
        options = []
        for body, _ in alive:
            for token in range(toy.vocabulary):
                if token not in (PAD, BOS) and (length < limit or token == EOS):
                    target = (*body, token)
                    options.append((target, toy.score(row, target)))
        options.sort(key=lambda option: -option[1])
        ended = [target for target, _ in options[:size] if target[-1] == EOS]
        completed += [(target, *penalised(toy, row, target, alpha, beta)) for target in ended]
        alive = [option for option in options if option[0][-1] != EOS][:size]
        if len(completed) >= sufficient:
            break
        if present_length and alive and len(completed) >= size:
            worst = sorted((score for _, score, _ in completed), reverse=True)[size - 1]
            if worst >= alive[0][1] / ((5 + length) / 6) ** alpha:
                break
    return sorted(completed, key=lambda option: -option[1])


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (1.0, 0.0), (0.6, 0.5)])
def test_a_wide_beam_is_exhaustive(alpha, beta):
    limit, search = 4, BeamSearch(5**3, alpha, beta)
    result = arrays(search(TOY.step, TOY.state(), np.full(3, limit)))
    for row in range(3):
        every = {target: penalised(TOY, row, target, alpha, beta) for target in TOY.targets(limit)}
        ranked = sorted(every, key=lambda target: -every[target][0])
        assert targets_of(result, row)[:10] == ranked[:10]
        for rank, target in enumerate(ranked[:10]):
            score, logp = every[target]
            assert result.scores[row, rank] == close_to(score, roundings=1000)
            assert result.log_probabilities[row, rank] == close_to(logp, roundings=1000)


def toy_log_probs(row, limit):
    """The function of the reference for a row of the toy: at the limit only the end is allowed."""

    def log_probs(prefix):
        scores = TOY.follow(row, (*prefix, EOS))[0][-1].copy()
        is_last = len(prefix) == limit - 1
        forbidden = [t for t in range(len(scores)) if t in (PAD, BOS) or (is_last and t != EOS)]
        scores[forbidden] = -np.inf
        return scores

    return log_probs


@pytest.mark.parametrize("alpha", [0.0, 0.6, 3.0])
@pytest.mark.parametrize("size", [1, 3])
def test_equals_the_documented_beam(size, alpha):
    limits = np.array([3, 8, 6])
    result = arrays(BeamSearch(size, alpha)(TOY.step, TOY.state(), limits))
    for row, limit in enumerate(limits):
        expected = reference.beam_search(toy_log_probs(row, limit), EOS, limit, size, alpha)[:size]
        assert targets_of(result, row) == [tokens for tokens, _ in expected]
        scores = [score for _, score in expected]
        assert_close(result.scores[row, : len(scores)], scores, roundings=1000)


def test_equals_the_documented_greedy_search():
    limits = np.array([3, 8, 6])
    result = arrays(GreedySearch()(TOY.step, TOY.state(), limits))
    for row, limit in enumerate(limits):
        tokens, total = reference.greedy_search(toy_log_probs(row, limit), EOS, limit)
        assert targets_of(result, row) == [tokens]
        assert result.log_probabilities[row, 0] == close_to(total, roundings=1000)


@pytest.mark.parametrize(
    ("alpha", "beta", "size"),
    [(0.0, 0.0, 3), (0.6, 0.0, 1), (0.6, 0.5, 5), (3.0, 0.0, 2), (3.0, 0.0, 5)],
)
def test_stopping_early_loses_nothing(alpha, beta, size):
    """Longer hypotheses often win late: α of 3 prefers them, and coverage does."""
    limits = np.array([3, 8, 6])
    for toy in (TOY, Toy(scale=2.5, seed=1)):
        every = arrays(BeamSearch(size, alpha, beta)(toy.step, toy.state(), limits))
        best = arrays(BeamSearch(size, alpha, beta, n_best=1)(toy.step, toy.state(), limits))
        for row in range(3):
            expected = plain_beam(toy, row, size, limits[row], alpha, beta)[:size]
            targets = [target for target, _, _ in expected]
            assert targets_of(every, row) == targets
            assert targets_of(best, row) == targets[:1]
            scores = [score for _, score, _ in expected]
            assert_close(every.scores[row, : len(scores)], scores, roundings=1000)


@pytest.mark.parametrize("patience", [0.4, 1.5, 40.0])
def test_patience_ends_a_row_when_so_many_have_ended(patience):
    """The result of a row does not depend on longer rows. α = 3 prefers late hypotheses."""
    size, limits, differ = 5, np.array([4, 12, 9]), []
    search = BeamSearch(size, 3.0, n_best=2, patience=patience)
    for toy in (TOY, Toy(scale=1.5, seed=3), Toy(scale=2.5, seed=1)):
        result = arrays(search(toy.step, toy.state(), limits))
        for row in range(3):
            settings = toy, row, size, limits[row], 3.0, 0.0
            expected = plain_beam(*settings, sufficient=patience * size)[:2]
            assert targets_of(result, row) == [target for target, _, _ in expected]
            differ.append(expected != plain_beam(*settings)[:2])
    # The patient find what there is, the impatient something else here and there.
    assert any(differ) == (patience < 4.0)


@pytest.mark.parametrize("n_best", [1, 2])
def test_the_present_length_ends_a_row_when_no_prefix_would_be_better_now(n_best):
    size, limits, differ = 2, np.array([6, 10, 9]), []
    search = BeamSearch(size, 3.0, n_best=n_best, patience=PRESENT_LENGTH)
    for toy in (TOY, Toy(scale=1.5, seed=2), Toy(scale=2.5, seed=0)):
        result = arrays(search(toy.step, toy.state(), limits))
        for row in range(3):
            settings = toy, row, size, limits[row], 3.0, 0.0
            expected = plain_beam(*settings, present_length=True)[:n_best]
            assert targets_of(result, row) == [target for target, _, _ in expected]
            differ.append(expected != plain_beam(*settings)[:n_best])
    assert any(differ)  # longer hypotheses would have been better


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_the_offset_of_the_length_penalty(offset):
    """0 divides by a power of the length, as Marian, fairseq and Hugging Face's generate do."""
    limit, alpha = 4, 1.5
    search = BeamSearch(5**3, alpha, length_offset=offset)
    result = arrays(search(TOY.step, TOY.state(), np.full(3, limit)))
    for row in range(3):
        every = {
            target: penalised(TOY, row, target, alpha, 0.0, offset)[0]
            for target in TOY.targets(limit)
        }
        ranked = sorted(every, key=lambda target: -every[target])[:10]
        assert targets_of(result, row)[:10] == ranked
        assert_close(result.scores[row, :10], [every[t] for t in ranked], roundings=1000)


def test_the_best_alone_takes_fewer_steps():
    toy, steps = Toy(scale=4.0, seed=2), []

    def step(tokens, state):
        steps[-1] += 1
        return toy.step(tokens, state)

    search, result = BeamSearch(3, 0.0), []
    for one in (search, search.best()):
        steps.append(0)
        result.append(arrays(one(step, toy.state([0, 1]), np.full(2, 50))))
    every, best = result
    assert search.hypotheses == 3
    assert best.ids.shape[1] == 1
    np.testing.assert_array_equal(every.ids[:, :1], best.ids)
    np.testing.assert_array_equal(every.scores[:, :1], best.scores)
    assert steps[1] < steps[0]
    assert steps[1] < 30
    assert best.lengths.max() < 10


def test_missing_hypotheses_are_padded():
    result = arrays(BeamSearch(4, 0.6)(TOY.step, TOY.state(), np.array([1, 2, 5])))
    np.testing.assert_array_equal(result.lengths[0], [1, 0, 0, 0])
    assert (result.ids[0, 1:] == PAD).all()
    assert (result.scores[0, 1:] < -1e8).all()


def test_candidates_beyond_32_bits_have_indices():
    """The last of 2³¹ and more numbers: 25,000 beams and a vocabulary of 120,000."""
    beams, tokens = np.array([[[0], [24_999]]], "int32"), np.array([[[5, 119_999]]], "int32")
    indices = keras.ops.convert_to_numpy(_flat_indices(beams, 120_000, tokens))
    expected = [[[5, 119_999], [24_999 * 120_000 + 5, 25_000 * 120_000 - 1]]]
    np.testing.assert_array_equal(indices, expected)
