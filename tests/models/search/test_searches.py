"""All searches on a toy model whose every hypothesis can be enumerated."""

import itertools

import keras
import numpy as np
import pytest

from models.decoders import RecurrentDecoder
from models.encoders import RecurrentEncoder
from models.search import BeamSearch, GreedySearch
from models.seq2seq import Seq2Seq
from models.vocabulary import BOS, EOS, PAD

SOURCE = np.array([[5, 6, 7, 3], [4, 3, 0, 0], [6, 4, 3, 0]], "int32")


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(4)
    encoder = RecurrentEncoder(8, embedding=4, units=5)
    decoder = RecurrentDecoder(
        6, encoder.depth, encoder.final_depth, embedding=4, units=5, layers=2
    )
    model = Seq2Seq(encoder, decoder)
    model.build()
    for weight in model.weights:  # far from uniform, so that hypotheses differ
        weight.assign(weight * 4.0)
    return model


def as_arrays(found):
    return type(found)(*(keras.ops.convert_to_numpy(x) for x in found))


def exhaustive(model, source, limit):
    """Every hypothesis of at most ``limit`` pieces with its log-probability."""
    pieces = [p for p in range(6) if p not in (PAD, BOS, EOS)]
    bodies = itertools.chain.from_iterable(
        itertools.product(pieces, repeat=n) for n in range(limit)
    )
    targets = [[*body, EOS] for body in bodies]
    padded = np.array([t + [PAD] * (limit - len(t)) for t in targets], "int32")
    sources = np.repeat(source[None], len(padded), axis=0)
    scores = keras.ops.convert_to_numpy(model.score(sources, padded))
    return {tuple(t): float(s) for t, s in zip(targets, scores, strict=True)}


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_a_wide_beam_is_exhaustive(model, alpha):
    limit, search = 4, BeamSearch(beam_size=40, length_penalty=alpha)
    found = as_arrays(model.search(SOURCE, search, np.full(3, limit)))
    for row, source in enumerate(SOURCE):
        every = exhaustive(model, source, limit)

        def order(item):
            return item[1] / ((5 + len(item[0])) / 6) ** alpha

        ranked = sorted(every.items(), key=order, reverse=True)
        for rank, (expected, logp) in enumerate(ranked[:5]):
            hypothesis = found.ids[row, rank][: found.lengths[row, rank]]
            assert tuple(hypothesis) == expected
            assert found.log_probabilities[row, rank] == pytest.approx(logp, abs=1e-4)
            assert found.scores[row, rank] == pytest.approx(order((expected, logp)), abs=1e-4)


def test_beam_of_one_is_greedy(model):
    limits = np.array([6, 7, 8])
    greedy = as_arrays(model.search(SOURCE, GreedySearch(), limits))
    beam = as_arrays(model.search(SOURCE, BeamSearch(1, length_penalty=0.0), limits))
    np.testing.assert_array_equal(greedy.ids, beam.ids)
    np.testing.assert_allclose(greedy.log_probabilities, beam.log_probabilities, atol=1e-5)


@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(3, 0.6)])
class TestEverySearch:
    def test_reported_score_is_the_forced_score(self, model, search):
        found = as_arrays(model.search(SOURCE, search, np.array([5, 9, 7])))
        for n in range(found.ids.shape[1]):
            forced = model.score(SOURCE, found.ids[:, n])
            np.testing.assert_allclose(found.log_probabilities[:, n], forced, atol=1e-4)

    def test_batched_is_one_by_one(self, model, search):
        limits = np.array([5, 9, 7])
        together = as_arrays(model.search(SOURCE, search, limits))
        for row in range(3):
            real = SOURCE[row : row + 1, : (SOURCE[row] != PAD).sum()]
            alone = as_arrays(model.search(real, search, limits[row : row + 1]))
            length = limits[row]
            np.testing.assert_array_equal(together.ids[row, :, :length], alone.ids[0])
            assert (together.ids[row, :, length:] == PAD).all()
            np.testing.assert_allclose(together.scores[row], alone.scores[0], atol=1e-4)

    def test_every_hypothesis_ends_within_its_limit(self, model, search):
        limits = np.array([1, 2, 12])
        found = as_arrays(model.search(SOURCE, search, limits))
        assert (found.lengths[:, 0] <= limits).all()
        for row in range(3):
            hypothesis = found.ids[row, 0]
            assert hypothesis[found.lengths[row, 0] - 1] == EOS
            assert (hypothesis == EOS).sum() == 1
            assert not np.isin(hypothesis[: found.lengths[row, 0]], [PAD, BOS]).any()


def test_hypotheses_are_distinct_and_ordered(model):
    found = as_arrays(model.search(SOURCE, BeamSearch(4, 0.6), np.full(3, 8)))
    assert (np.diff(found.scores, axis=1) <= 1e-6).all()
    for row in range(3):
        assert len({tuple(ids) for ids in found.ids[row]}) == 4


@pytest.mark.parametrize("settings", [{"beam_size": 0}, {"length_penalty": -0.1}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        BeamSearch(**settings)
