"""Several models as one."""

import keras
import numpy as np
import pytest

from regard.models.decoders import BahdanauDecoder, LuongDecoder
from regard.models.encoders import RecurrentEncoder
from regard.models.ensemble import Ensemble
from regard.models.search import BeamSearch, GreedySearch
from regard.models.seq2seq import Seq2Seq
from tests.marks import slow
from tests.models.search.toy import arrays
from tests.tolerances import assert_close

SOURCE = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")
TARGET = np.array([[4, 5, 3, 0], [7, 6, 5, 3]], "int32")
LIMITS = np.array([6, 8])
SEARCHES = [GreedySearch(), BeamSearch(3, 0.6, coverage_penalty=0.2)]


def make(seed, decoder=LuongDecoder, units=6, dtype="float32"):
    keras.utils.set_random_seed(seed)
    encoder = RecurrentEncoder(9, embedding=5, units=units, dtype=dtype)
    attention = {"score": "general", "alignment": "soft"}
    decoder = decoder(
        8,
        encoder.depth,
        encoder.final_depth,
        embedding=5,
        units=units,
        attention=attention,
        dtype=dtype,
    )
    model = Seq2Seq(encoder, decoder, dtype=dtype)
    model.build()
    for weight in model.weights:
        weight.assign(weight * 3.0)
    return model


@pytest.fixture(scope="module")
def models():
    return [make(1), make(2, BahdanauDecoder, units=4), make(3)]


def ensemble_of(models):
    ensemble = Ensemble(models)
    ensemble.build()
    return ensemble


def probabilities(model):
    logits, alignments = model.teacher_force(SOURCE, TARGET)
    logits = keras.ops.convert_to_numpy(logits).astype("float64")
    odds = np.exp(logits)
    return odds / odds.sum(-1, keepdims=True), keras.ops.convert_to_numpy(alignments)


GREEDY, BEAM = SEARCHES


@pytest.mark.parametrize(
    ("search", "copies"),
    [(GREEDY, 1), slow(GREEDY, 2), slow(BEAM, 1), (BEAM, 2)],
    ids=["greedy-1", "greedy-2", "beam-1", "beam-2"],
)
def test_an_ensemble_of_copies_is_the_model(models, search, copies):
    model, ensemble = models[1], ensemble_of([models[1]] * copies)
    result, expected = (arrays(m.search(SOURCE, search, LIMITS)) for m in (ensemble, model))
    np.testing.assert_array_equal(result.ids, expected.ids)
    assert_close(result.scores, expected.scores, roundings=1000)
    scores = (m.score(SOURCE, TARGET) for m in (ensemble, model))
    assert_close(*scores, roundings=1000)


def test_probabilities_and_alignments_are_means(models):
    each = [probabilities(model) for model in models]
    result, alignments = probabilities(ensemble_of(models))
    assert_close(result, np.mean([p for p, _ in each], axis=0))
    assert_close(alignments, np.mean([a for _, a in each], axis=0))


@pytest.mark.parametrize("search", SEARCHES)
def test_reported_is_forced(models, search):
    ensemble = ensemble_of(models)
    result = arrays(ensemble.search(SOURCE, search, LIMITS))
    for n in range(result.ids.shape[1]):
        score_with_alignment = ensemble.score(SOURCE, result.ids[:, n])
        assert_close(result.log_probabilities[:, n], score_with_alignment, roundings=1000)
    assert any(
        not np.array_equal(result.ids, arrays(model.search(SOURCE, search, LIMITS)).ids)
        for model in models
    )


def test_what_all_models_rule_out_is_ruled_out(models):
    """No mean of probabilities that have become zero is not a number."""
    sure = make(1)
    sure.decoder.logits.bias.assign([0, -1e4, 0, 0, 0, 0, 0, 0])
    score = ensemble_of([sure, sure]).score(SOURCE, np.full_like(TARGET, 1))
    assert np.isfinite(keras.ops.convert_to_numpy(score)).all()
    half = keras.ops.convert_to_numpy(ensemble_of([sure, models[0]]).score(SOURCE, TARGET))
    assert np.isfinite(half).all()


def test_models_in_half_precision_are_averaged_in_float32(models):
    halves = ensemble_of([make(1, dtype="mixed_bfloat16"), make(3)])
    logits, alignment = halves.teacher_force(SOURCE, TARGET)
    assert {keras.backend.standardize_dtype(x.dtype) for x in (logits, alignment)} == {"float32"}
    whole = ensemble_of([models[0], models[2]])
    difference = halves.score(SOURCE, TARGET) - whole.score(SOURCE, TARGET)
    assert np.abs(difference).max() < 0.5
    result = arrays(halves.search(SOURCE, BeamSearch(2), LIMITS))
    assert np.isfinite(result.scores).all()
