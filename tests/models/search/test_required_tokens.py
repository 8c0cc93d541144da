"""Required tokens against exhaustive search, and hypotheses that are always valid."""

import itertools

import numpy as np
import pytest

from regard.models.search import BeamSearch, GreedySearch, SamplingSearch
from regard.models.vocabulary import EOS
from tests.models.search.test_beam import penalised
from tests.models.search.test_phrases import padded
from tests.models.search.toy import Toy, arrays, targets_of
from tests.tolerances import assert_close

# Slots: two singles, then the first tokens of two pairs, then their last tokens.
# Token 4 has none, 5 and 10 are the first single, 6 the second, 7 and 8 open, 9 and 11 close.
SLOTS = np.array([[-1, -1, -1, -1, -1, 0, 1, 2, 3, 4, 0, 5]], "int32")
ROWS = {  # singles and pairs of each row
    "nothing": ([0, 0], [0, 0]),
    "one": ([1, 0], [0, 0]),
    "two": ([1, 1], [0, 0]),
    "a pair": ([0, 0], [1, 0]),
    "all": ([1, 1], [1, 1]),
    "the second": ([0, 1], [0, 1]),
}
SEARCHES = {
    "greedy": GreedySearch(),
    "greedy, no repetition": GreedySearch(2),
    "beam": BeamSearch(3, 0.6, 0.2),
    "patient": BeamSearch(4, patience=1.0),
    "one prefix": BeamSearch(1, 0.6),
    "sampling": SamplingSearch(temperature=3.0, samples=4, seed=5),
    "sampling of few": SamplingSearch(temperature=3.0, top_k=2, samples=2, seed=5),
}


def required(*rows):
    singles, pairs = zip(*rows, strict=True)
    return {"slots": SLOTS, "singles": np.array(singles), "pairs": np.array(pairs)}


def is_valid(target, singles, pairs):
    """Whether a target has each required slot once, and pairs nest."""
    slots = [int(SLOTS[0, token]) for token in target]
    needed = [slot for slot, count in enumerate([*singles, *pairs, *pairs]) if count]
    if sorted(slot for slot in slots if slot >= 0) != needed:
        return False
    stack = []
    for slot in slots:
        if slot in (2, 3):
            stack.append(slot)
        elif slot in (4, 5) and (not stack or stack.pop() != slot - 2):
            return False
    return not stack


@pytest.mark.parametrize("name", SEARCHES)
def test_every_hypothesis_is_valid(name):
    search, rows = SEARCHES[name], list(ROWS.values())
    for seed in range(3):
        toy = Toy(rows=len(rows), vocabulary=12, scale=2.5, seed=seed)
        counts = np.array([sum(singles) + 2 * sum(pairs) for singles, pairs in rows])
        for room in (1, 3):
            limits = counts + room
            result = arrays(search(toy.step, toy.state(), limits, **required(*rows)))
            for index, row in enumerate(rows):
                targets = targets_of(result, index)
                assert targets
                for target, value in zip(targets, result.log_probabilities[index], strict=False):
                    assert is_valid(target, *row)
                    assert len(target) <= limits[index]
                    assert value == pytest.approx(toy.score(index, target), rel=1e-4)


def test_a_wide_beam_is_exhaustive():
    toy, limit = Toy(rows=3, vocabulary=12, scale=1.5), 5
    rows = [ROWS["one"], ROWS["a pair"], ROWS["two"]]
    search = BeamSearch(8**4, 0.6, n_best=3)
    result = arrays(search(toy.step, toy.state(), np.full(3, limit), **required(*rows)))
    for row, needed in enumerate(rows):
        valid = [target for target in toy.targets(limit) if is_valid(target, *needed)]
        scores = {target: penalised(toy, row, target, 0.6, 0.0)[0] for target in valid}
        assert targets_of(result, row) == sorted(scores, key=lambda target: -scores[target])[:3]


def test_rows_do_not_depend_on_each_other():
    rows = list(ROWS.values())
    toy, search = Toy(rows=len(rows), vocabulary=12, scale=2.0), BeamSearch(3, 0.6)
    limits = np.full(len(rows), 9)
    batched = arrays(search(toy.step, toy.state(), limits, **required(*rows)))
    for index, row in enumerate(rows):
        alone = arrays(search(toy.step, toy.state([index]), limits[:1], **required(row)))
        assert targets_of(batched, index) == targets_of(alone, 0)
        assert_close(batched.scores[index], alone.scores[0], roundings=1000)


@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(3), SamplingSearch(samples=3)])
def test_tokens_of_slots_do_not_follow_without_need(search):
    toy, limits = Toy(rows=2, vocabulary=12, scale=3.0), np.array([9, 9])
    slots = np.full((1, 12), -1, "int32")
    slots[0, [5, 7, 9]] = [0, 1, 2]
    result = arrays(search(toy.step, toy.state(), limits, slots=slots))
    for target in itertools.chain(targets_of(result, 0), targets_of(result, 1)):
        assert not {5, 7, 9}.intersection(target)


def test_with_a_prefix_and_phrases():
    toy = Toy(rows=2, vocabulary=12, scale=2.5)
    rows = [([1, -1], [1, 0]), ([1, 0], [0, 1])]
    prefix = np.array([[7, 4], [5, 4]])
    limits = np.array([2 + 2 + 3 + 1, 2 + 2 + 3 + 1])
    constraints = {"prefix": prefix, "phrases": padded([[4, 6]], [[4, 4]])}
    for search in (BeamSearch(4), BeamSearch(1)):
        result = arrays(search(toy.step, toy.state(), limits, **constraints, **required(*rows)))
        for target in targets_of(result, 0):
            assert target[:2] == (7, 4)
            assert (4, 6) in itertools.pairwise(target)
            assert is_valid([token for token in target if token != 6], [1, 0], [1, 0])
        for target in targets_of(result, 1):
            assert target[:2] == (5, 4)
            assert (4, 4) in itertools.pairwise(target)
            assert is_valid(target, *rows[1])
        assert targets_of(result, 0)
        assert targets_of(result, 1)
        assert all(target[-1] == EOS for target in targets_of(result, 0))
