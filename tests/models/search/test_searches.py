"""What holds of every search."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.models.search import SEARCHES, BeamSearch, GreedySearch, SamplingSearch
from regard.models.search.base import Search, take_rows
from regard.models.vocabulary import BOS, EOS, PAD
from tests.models.search.toy import Toy, arrays, targets_of
from tests.tolerances import assert_close, close_to

TOY = Toy()
LIMITS = np.array([3, 9, 6])
KEYS = np.array([11, 7, 3])
ALL = {
    "greedy": GreedySearch(no_repeat_ngram_size=2),
    "beam": BeamSearch(3, 0.6, 0.2, 2, no_repeat_ngram_size=2),
    "beam, best": BeamSearch(4, 1.0, n_best=1),
    "beam, whole": BeamSearch(40, 0.6),
    "beam, impatient": BeamSearch(3, 1.0, n_best=2, patience=1.0),
    "sampling": SamplingSearch(temperature=1.5, top_k=3, top_p=0.8, samples=2, seed=1),
}


@pytest.fixture(params=ALL)
def search(request):
    return ALL[request.param]


def find(search, **options):
    return arrays(search(TOY.step, TOY.state(), LIMITS, keys=KEYS, **options))


@functools.cache
def find_plain(search):
    """Search once for all tests that set no constraints."""
    return find(search)


def test_reported_is_forced(search):
    """Whatever a search prefers, what it reports is the model's own probability."""
    result = find(search, minimums=np.array([1, 4, 1]))
    for row in range(3):
        for n, target in enumerate(targets_of(result, row)):
            expected = TOY.score(row, target)
            assert result.log_probabilities[row, n] == close_to(expected, roundings=1000)


@pytest.mark.parametrize("name", ["greedy", "beam", "beam, impatient", "sampling"])
def test_cached_is_uncached(name):
    search = ALL[name]
    result = find_plain(search)
    state = TOY.uncached_state(9)
    again = arrays(search(TOY.uncached(9), state, LIMITS, keys=KEYS))
    np.testing.assert_array_equal(result.ids, again.ids)
    assert_close(result.scores, again.scores, roundings=1000)


def test_batched_is_one_by_one(search):
    minimums, prefix = np.array([0, 5, 3]), np.array([[4, PAD], [PAD, PAD], [5, 6]])
    batched = find(search, minimums=minimums, prefix=prefix)
    for row in range(3):
        one = slice(row, row + 1)
        alone = arrays(
            search(
                TOY.step,
                TOY.state([row]),
                LIMITS[one],
                minimums=minimums[one],
                prefix=prefix[one],
                keys=KEYS[one],
            )
        )
        length = LIMITS[row]
        np.testing.assert_array_equal(batched.ids[row, :, :length], alone.ids[0])
        assert (batched.ids[row, :, length:] == PAD).all()
        np.testing.assert_array_equal(batched.lengths[row], alone.lengths[0])
        assert_close(batched.scores[row], alone.scores[0], roundings=1000)


@pytest.mark.parametrize(
    ("name", "rows", "vocabulary"),
    [
        ("greedy", None, TOY.vocabulary),
        ("beam", 3, TOY.vocabulary),
        ("beam, impatient", None, TOY.vocabulary),
        # As a pointer's, whose tokens are the inputs.
        ("beam", None, None),
        ("sampling", None, None),
    ],
)
def test_in_a_graph_it_is_the_same(name, rows, vocabulary):
    """With the lengths unknown, and the numbers of rows and of tokens too, as it is exported."""
    search, rows = ALL[name], tf.TensorSpec([rows], tf.int32)

    @tf.function(input_signature=[rows, rows, tf.TensorSpec([], tf.int32)])
    def graph(limits, keys, tokens):
        def step(*inputs):
            logits, state, alignment = TOY.step(*inputs)
            logits = tf.reshape(logits, [-1, vocabulary or tokens])
            assert logits.shape[-1] == vocabulary
            return logits, state, alignment

        state = take_rows(TOY.state(), tf.range(tf.shape(limits)[0]))
        prefix = limits[:, None] * 0 + 4 if vocabulary else None
        return search(step, state, limits, keys=keys, prefix=prefix)

    expected = find(search, prefix=np.full((3, 1), 4) if vocabulary else None)
    arguments = (tf.constant(x, tf.int32) for x in (LIMITS, KEYS, TOY.vocabulary))
    result = arrays(graph(*arguments))
    np.testing.assert_array_equal(result.ids, expected.ids)
    assert_close(result.scores, expected.scores)


def assert_lengths(result, minimums, limits):
    for row, (minimum, limit) in enumerate(zip(minimums, limits, strict=True)):
        assert result.lengths[row, 0] > 0
        for target in targets_of(result, row):
            # A limit comes before a minimum.
            assert min(minimum, limit) <= len(target) <= limit
            assert target[-1] == EOS
            assert not {PAD, BOS, EOS} & set(target[:-1])
        assert (result.ids[row, :, limit:] == PAD).all()


def test_lengths_are_within_the_limits(search):
    assert_lengths(find_plain(search), np.ones(3), LIMITS)
    minimums = np.array([1, 1, 1, 3, 5, 6, 9, 9, 9])
    rows = np.tile(np.arange(3), 3)
    result = search(TOY.step, TOY.state(rows), LIMITS[rows], minimums=minimums, keys=KEYS[rows])
    assert_lengths(arrays(result), minimums, LIMITS[rows])


def test_a_prefix_is_kept_and_counted(search):
    prefix = np.array([[4, 5, 6], [6, PAD, PAD], [PAD, PAD, PAD]])
    result, free = find(search, prefix=prefix), find_plain(search)
    # Two fit before the end of the first row's three; a row without a prefix is free.
    for row, token_ids in enumerate([(4, 5), (6,), ()]):
        for n, target in enumerate(targets_of(result, row)):
            assert target[: len(token_ids)] == token_ids
            expected = TOY.score(row, target)
            assert result.log_probabilities[row, n] == close_to(expected, roundings=1000)
    np.testing.assert_array_equal(result.ids[2], free.ids[2])


def test_a_prefix_may_be_a_whole_hypothesis(search):
    result = find(search, prefix=np.array([[4, EOS, PAD], [5, 4, EOS], [EOS, PAD, PAD]]))
    for row, target in enumerate([(4, EOS), (5, 4, EOS), (EOS,)]):
        assert targets_of(result, row)[0] == target


def test_the_best_come_first(search):
    result = find_plain(search)
    assert (np.diff(result.scores, axis=1) <= 1e-6).all()


def test_a_limit_of_one_is_an_empty_hypothesis(search):
    result = arrays(search(TOY.step, TOY.state(), np.ones(3), keys=KEYS))
    for row in range(3):
        assert set(targets_of(result, row)) == {(EOS,)}


def test_beam_of_one_is_greedy():
    options = {"minimums": np.array([1, 4, 2]), "prefix": np.array([[PAD], [5], [PAD]])}
    for penalties in ({}, {"no_repeat_ngram_size": 2}):
        greedy = find(GreedySearch(**penalties), **options)
        beam = find(BeamSearch(1, length_penalty=0.0, **penalties), **options)
        np.testing.assert_array_equal(greedy.ids, beam.ids)
        assert_close(greedy.log_probabilities, beam.log_probabilities)


def test_sampling_from_the_best_piece_alone_is_greedy():
    greedy = find(GreedySearch())
    for settings in ({"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-4}):
        np.testing.assert_array_equal(find(SamplingSearch(**settings)).ids, greedy.ids)


def test_every_search_has_a_name():
    assert set(SEARCHES.values()) == {BeamSearch, GreedySearch, SamplingSearch}
    assert all(issubclass(search, Search) for search in SEARCHES.values())
    with pytest.raises(TypeError, match="Search"):
        Search()(TOY.step, TOY.state(), keras.ops.ones(3))
