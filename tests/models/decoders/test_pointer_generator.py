"""Recurrent decoders that copy tokens of the source."""

import keras
import numpy as np
import pytest
from keras import ops

from regard.models.decoders import BahdanauDecoder, LuongDecoder
from regard.models.encoders import RecurrentEncoder
from regard.models.ensemble import Ensemble
from regard.models.search import BeamSearch, GreedySearch
from regard.models.seq2seq import Seq2Seq, shift

SOURCE = np.array([[5, 8, 7, 3], [8, 3, 0, 0]], "int32")
TARGET = np.array([[8, 7, 3, 0], [8, 5, 6, 3]], "int32")
KINDS = {
    "luong, fed": (LuongDecoder, {"attention": {"score": "general"}}),
    "luong, free": (LuongDecoder, {"attention": {"score": "dot"}, "input_feeding": False}),
    "bahdanau": (BahdanauDecoder, {"attention": {"score": "additive"}, "cell": "gru"}),
    "heads": (LuongDecoder, {"attention": {"score": "scaled_dot", "heads": 2}, "cell": "rnn"}),
}


def created(kind, **changes):
    make, settings = KINDS[kind]
    keras.utils.set_random_seed(7)
    encoder = RecurrentEncoder(9, embedding=4, units=4)
    decoder = make(
        9,
        encoder.depth,
        encoder.final_depth,
        **{"embedding": 4, "units": 8, "pointer_generator": True, **settings, **changes},
    )
    model = Seq2Seq(encoder, decoder)
    model.build()
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_steps_equal_unroll(kind):
    model = created(kind)
    memory = model.encode(SOURCE)
    tokens = shift(TARGET)
    logits, alignments = model.decoder.unroll(tokens, memory)
    np.testing.assert_allclose(ops.sum(ops.exp(logits), -1), 1.0, atol=1e-5)
    state = model.decoder.start(memory)
    for t in range(4):
        result, state, alignment = model.decoder.step(tokens[:, t], state)
        np.testing.assert_allclose(result, logits[:, t], atol=1e-5)
        np.testing.assert_allclose(alignment, alignments[:, t], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_an_open_gate_only_copies_the_source(kind):
    model = created(kind)
    model.decoder.copying.gate.bias.assign([-50.0])
    logits, alignments = model.decoder.unroll(shift(TARGET), model.encode(SOURCE))
    expected = np.zeros((2, 4, 9))
    for row in range(2):
        for place, token in enumerate(SOURCE[row]):
            expected[row, :, token] += np.asarray(alignments)[row, :, place]
    np.testing.assert_allclose(ops.exp(logits), expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(3)])
def test_scores_are_those_of_forced_scoring(kind, search):
    model = created(kind)
    result = model.search(SOURCE, search, np.array([6, 6], "int32"))
    best = ops.convert_to_numpy(result.ids)[:, 0]
    np.testing.assert_allclose(
        model.score(SOURCE, best), result.log_probabilities[:, 0], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind):
    model = created(kind)
    wide = np.pad(SOURCE, [(0, 0), (0, 3)])
    np.testing.assert_allclose(model.score(wide, TARGET), model.score(SOURCE, TARGET), atol=1e-5)


@pytest.mark.slow
def test_it_learns_to_copy():
    """Three random tokens: a guess is right once in 125 times."""
    model = created("luong, fed", embedding=4)
    random = np.random.default_rng(0)
    names = random.integers(4, 9, (512, 3)).astype("int32")
    source = np.pad(names, [(0, 0), (0, 1)], constant_values=3)
    model.compile(optimizer=keras.optimizers.Adam(0.02))
    model.fit({"source": source, "target": source}, epochs=12, batch_size=64, verbose=0)
    result = model.search(source[:50], GreedySearch(), np.full(50, 6, "int32"))
    ids = ops.convert_to_numpy(result.ids)[:, 0, :4]
    assert (ids == source[:50]).all(axis=1).mean() > 0.8


def test_an_ensemble_copies():
    models = [created("luong, fed"), created("bahdanau")]
    ensemble = Ensemble(models)
    ensemble.build()
    logits = [m.teacher_force(SOURCE, TARGET)[0] for m in models]
    expected = np.log(np.mean([np.exp(x) for x in logits], axis=0))
    np.testing.assert_allclose(ensemble.teacher_force(SOURCE, TARGET)[0], expected, atol=1e-4)
    result = ensemble.search(SOURCE, GreedySearch(), np.array([5, 5], "int32"))
    best = ops.convert_to_numpy(result.ids)[:, 0]
    np.testing.assert_allclose(
        ensemble.score(SOURCE, best), result.log_probabilities[:, 0], rtol=1e-4, atol=1e-4
    )


def test_without_attention_there_is_nothing_to_copy():
    with pytest.raises(ValueError, match="set `attention`"):
        created("luong, fed", attention=None)
