"""Searches with pointers, whose vocabulary is the inputs: small enough to try every answer."""

import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.models.decoders import PointerDecoder
from regard.models.encoders import RecurrentEncoder, TransformerEncoder
from regard.models.search import BeamSearch, GreedySearch, SamplingSearch
from regard.models.seq2seq import Seq2Seq
from regard.models.vocabulary import EOS, FIRST_POSITION, PAD
from tests.models.search.toy import arrays, targets_of
from tests.tolerances import assert_close, close_to

LENGTHS = np.array([4, 2, 3])
POINTS = np.zeros((3, 4, 3), "float32")
for row, length in enumerate(LENGTHS):
    POINTS[row, :length] = 1
    POINTS[row, :length, :2] = np.random.default_rng(row).uniform(-1, 1, (length, 2))
VISITS = ("all", "once", "any")
SEARCHES = {
    "greedy": GreedySearch(),
    "beam": BeamSearch(3, 0.0, n_best=2),
    "beam, favouring the long": BeamSearch(4, 1.0),
    "sampling": SamplingSearch(samples=3, seed=2),
    "sampling, cut": SamplingSearch(1.5, top_k=9, top_p=0.8, samples=2),
}


def make(visits, recurrent=True):
    keras.utils.set_random_seed(4)
    if recurrent:
        encoder = RecurrentEncoder(None, embedding=6, units=5)
    else:
        encoder = TransformerEncoder(
            None, embedding=8, layers=1, heads=2, feed_forward=6, positions="none"
        )
    decoder = PointerDecoder(
        encoder.depth, encoder.final_depth, units=7, glimpse=True, visits=visits
    )
    model = Seq2Seq(encoder, decoder)
    model.build()
    for weight in model.weights:  # far from uniform, so that hypotheses differ
        weight.assign(weight * 2.5)
    return model


@pytest.fixture(scope="module")
def models():
    return {visits: make(visits, recurrent=visits != "once") for visits in VISITS}


@pytest.fixture(scope="module")
def find_batched(models):
    """Search all rows in one batch, once for all tests."""
    return functools.cache(lambda visits, name: find(models[visits], SEARCHES[name]))


# Every search and every rule at least once.
PAIRS = [
    ("all", "beam, favouring the long"),
    ("all", "sampling"),
    ("once", "greedy"),
    ("once", "sampling, cut"),
    ("any", "beam"),
    ("any", "sampling, cut"),
]
every_pair = pytest.mark.parametrize(("visits", "name"), PAIRS)


def find(model, search, points=POINTS, lengths=LENGTHS, **options):
    options = {"keys": np.arange(len(lengths)) + 5, **options}
    return arrays(model.search(points, search, lengths + 1, **options))


def every(visits, n):
    """All answers that there are within the limit, as positions."""
    if visits == "all":
        return list(itertools.permutations(range(n)))
    lengths = range(1, n + 1)
    if visits == "once":
        return [p for k in lengths for p in itertools.permutations(range(n), k)]
    return [p for k in lengths for p in itertools.product(range(n), repeat=k)]


def ids_of(answers, n):
    ids = np.full((len(answers), n + 1), PAD, "int32")
    for row, answer in enumerate(answers):
        ids[row, : len(answer)] = np.array(answer, int) + FIRST_POSITION
        ids[row, len(answer)] = EOS
    return ids


@every_pair
def test_every_answer_can_be_one_and_is_scored_as_if_it_were_given(
    models, find_batched, visits, name
):
    result = find_batched(visits, name)
    for row, n in enumerate(LENGTHS):
        answers = targets_of(result, row)
        assert answers
        for ids in answers:
            assert ids[-1] == EOS
            assert tuple(i - FIRST_POSITION for i in ids[:-1]) in every(visits, n)
    for n in range(result.ids.shape[1]):
        there = result.lengths[:, n] > 0
        teacher_forced = np.asarray(models[visits].score(POINTS, result.ids[:, n]))
        assert_close(result.log_probabilities[there, n], teacher_forced[there], roundings=1000)


@pytest.mark.parametrize("visits", VISITS)
def test_probabilities_sum_to_one_and_a_wide_beam_finds_the_greatest(models, visits):
    # Wide enough for every prefix there is.
    result = find(models[visits], BeamSearch(90, 0.0, n_best=1))
    for row, n in enumerate(LENGTHS):
        answers = every(visits, n)
        points = np.repeat(POINTS[row : row + 1], len(answers), axis=0)
        scores = np.asarray(models[visits].score(points, ids_of(answers, n)), "float64")
        # With points that may come again, answers longer than any search gives are left out.
        total = np.exp(scores).sum()
        assert total < 0.999 if visits == "any" else total == close_to(1, roundings=1000)
        assert (scores > -100).all()
        best = tuple(i - FIRST_POSITION for i in targets_of(result, row)[0][:-1])
        assert best == answers[scores.argmax()]
        assert result.log_probabilities[row, 0] == close_to(scores.max(), roundings=1000)


@every_pair
def test_batched_and_padded_is_alone(models, find_batched, visits, name):
    """Also in what is drawn: no noise depends on how many other points there might be."""
    batched = find_batched(visits, name)
    for row, n in enumerate(LENGTHS):
        one = slice(row, row + 1)
        keys = np.arange(3)[one] + 5
        alone = find(models[visits], SEARCHES[name], POINTS[one, :n], LENGTHS[one], keys=keys)
        np.testing.assert_array_equal(batched.ids[row, :, : n + 1], alone.ids[0])
        np.testing.assert_array_equal(batched.lengths[row], alone.lengths[0])
        there = alone.lengths[0] > 0
        ours, theirs = batched.log_probabilities[row], alone.log_probabilities[0]
        assert_close(ours[there], theirs[there], roundings=1000)


@pytest.mark.parametrize("name", ["beam, favouring the long", "sampling, cut"])
def test_in_a_graph_it_is_the_same(models, name):
    """With the numbers of rows and points unknown, as it is exported."""
    model, search = models["once"], SEARCHES[name]

    @tf.function(input_signature=[tf.TensorSpec([None, None, 3]), tf.TensorSpec([None], tf.int32)])
    def graph(points, lengths):
        return model.search(points, search, lengths + 1, keys=lengths)

    lengths = LENGTHS.astype("int32")
    expected = find(model, search, keys=lengths)
    result = arrays(graph(POINTS, lengths))
    np.testing.assert_array_equal(result.ids, expected.ids)
    assert_close(result.log_probabilities, expected.log_probabilities, roundings=1000)


def test_a_prefix_and_a_least_length_are_kept(models):
    prefix = np.array([[FIRST_POSITION + 2], [FIRST_POSITION + 1], [PAD]])
    minimums = np.array([4, 3, 2])
    result = find(models["once"], SEARCHES["beam"], prefix=prefix, minimums=minimums)
    for row, n in enumerate(LENGTHS):
        for ids in targets_of(result, row):
            assert tuple(i - FIRST_POSITION for i in ids[:-1]) in every("once", n)
            assert len(ids) >= minimums[row]
            assert prefix[row] in (PAD, ids[0])


@every_pair
def test_one_point_and_none(models, visits, name):
    points = POINTS[:2].copy()
    points[0, 1:], points[1] = 0, 0
    result = find(models[visits], SEARCHES[name], points, np.array([1, 0]))
    assert targets_of(result, 0)[0] == (FIRST_POSITION, EOS)
    assert targets_of(result, 1)[0] == (EOS,)
    if visits == "all":
        assert_close(result.log_probabilities[:, 0], 0)
