"""Decoders that copy tokens of the source, also those that the vocabulary lacks."""

import keras
import numpy as np
import pytest
from keras import ops

from regard.models.decoders import (
    BahdanauDecoder,
    FeedForwardDecoder,
    LuongDecoder,
    TransformerDecoder,
)
from regard.models.encoders import RecurrentEncoder
from regard.models.ensemble import Ensemble
from regard.models.losses import penalty, token_losses
from regard.models.search import BeamSearch, GreedySearch
from regard.models.seq2seq import Seq2Seq, shift
from tests.tolerances import assert_close

# The vocabulary has 9 tokens: 9 and 10 are unknown ones.
SOURCE = np.array([[5, 9, 7, 10, 9, 3], [8, 9, 3, 0, 0, 0]], "int32")
TARGET = np.array([[10, 7, 3, 0], [9, 5, 6, 3]], "int32")
KINDS = {
    "luong, fed": (LuongDecoder, {"attention": {"score": "general"}}),
    "luong, free": (LuongDecoder, {"attention": {"score": "dot"}, "input_feeding": False}),
    "transformer": (TransformerDecoder, {"layers": 2, "heads": 2, "feed_forward": 8}),
    "bahdanau": (BahdanauDecoder, {"attention": {"score": "additive"}, "cell": "gru"}),
    "feed-forward": (FeedForwardDecoder, {"attention": {"score": "general"}}),
    "heads": (LuongDecoder, {"attention": {"score": "scaled_dot", "heads": 2}, "cell": "rnn"}),
}


def created(kind, **changes):
    make, settings = KINDS[kind]
    keras.utils.set_random_seed(7)
    encoder = RecurrentEncoder(9, embedding=4, units=4)
    options = {"embedding": 4, "pointer_generator": True, **settings, **changes}
    if make is not TransformerDecoder:
        options["units"] = 8
    decoder = make(9, encoder.depth, encoder.final_depth, **options)
    model = Seq2Seq(encoder, decoder)
    model.build()
    return model


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    """A model of each kind, for all tests that do not change it."""
    return created(request.param)


def test_steps_equal_unroll(model):
    memory = model.encode(SOURCE)
    tokens = shift(TARGET)
    logits, alignments = model.decoder.unroll(tokens, memory)
    assert_close(ops.sum(ops.exp(logits), -1), 1.0)
    state = model.decoder.start(memory, max_length=4)
    for t in range(4):
        result, state, alignment = model.decoder.step(tokens[:, t], state)
        assert_close(result, logits[:, t])
        assert_close(alignment, alignments[:, t])


def test_an_open_gate_only_copies_the_source(model):
    bias = model.decoder.copying.gate.bias
    before = np.array(bias)
    bias.assign([-50.0])
    try:
        logits, alignments = model.decoder.unroll(shift(TARGET), model.encode(SOURCE))
    finally:
        bias.assign(before)
    expected = np.zeros((2, 4, 9 + 6))
    for row in range(2):
        for place, token in enumerate(SOURCE[row]):
            expected[row, :, token] += np.asarray(alignments)[row, :, place]
    assert_close(ops.exp(logits), expected)


def test_scores_are_those_of_forced_scoring(model):
    result = model.search(SOURCE, BeamSearch(3), np.array([6, 6], "int32"))
    best = ops.convert_to_numpy(result.ids)[:, 0]
    assert_close(model.score(SOURCE, best), result.log_probabilities[:, 0], roundings=1000)


def test_padding_changes_nothing(model):
    wide = np.pad(SOURCE, [(0, 0), (0, 3)])
    assert_close(model.score(wide, TARGET), model.score(SOURCE, TARGET))


def test_unknown_tokens_are_read_as_unknown_and_copied_apart(model):
    """Another numbering of a row's unknown tokens changes their columns and nothing else."""
    swap = np.array([*range(9), 10, 9])
    logits, alignments = model.teacher_force(SOURCE, TARGET)
    swapped, same_alignments = model.teacher_force(swap[SOURCE], swap[TARGET])
    order = [*swap, *range(11, 15)]
    assert_close(swapped, np.asarray(logits)[:, :, order])
    assert_close(same_alignments, alignments)
    probs = np.exp(logits)
    assert (probs[0, :, 9:11] > 1e-3).all()
    assert (probs[:, :, 11:] < 1e-9).all()
    assert (probs[1, :, 10] < 1e-9).all()


def test_the_smoothing_is_that_of_the_vocabulary():
    """An unknown token that the source lacks would have an infinite loss."""
    model = created("transformer")
    logits, _ = model.teacher_force(SOURCE, TARGET)
    losses = token_losses(logits, TARGET, 0.1, vocabulary=9)
    log_probs = np.asarray(logits, "float64")
    expected = -0.9 * np.take_along_axis(log_probs, TARGET[..., None], 2)[..., 0]
    expected -= 0.1 * log_probs[:, :, :9].mean(-1)
    np.testing.assert_allclose(losses.smoothed, expected, rtol=1e-5)


def test_the_gradient_of_the_smoothed_loss():
    import tensorflow as tf

    logits = tf.random.stateless_normal([2, 3, 7], [1, 2])
    targets = np.array([[6, 1, 2], [0, 5, 4]], "int32")

    def plain(logits):
        log_probs = tf.nn.log_softmax(logits)
        target = tf.gather(log_probs, targets, batch_dims=2)
        return -0.8 * target - 0.2 * tf.reduce_mean(log_probs[..., :5], -1)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(logits)
        losses = token_losses(logits, targets, 0.2, vocabulary=5).smoothed
        reference = plain(logits)
    np.testing.assert_allclose(losses, reference, rtol=1e-5)
    expected = tape.gradient(reference, logits)
    assert_close(tape.gradient(losses, logits), expected)


def test_coverage_of_a_transformer_is_its_formula():
    """See et al. 2017, eq. 12, on the mean of the heads of the last block."""
    model = created("transformer")
    outputs = Seq2Seq(model.encoder, model.decoder, penalties={"coverage": 1.0})(
        {"source": SOURCE, "target": TARGET}
    )
    weights = np.asarray(outputs["alignment"], "float64")
    mask = (TARGET != 0).astype("float64")
    total, covered = 0.0, np.zeros((2, 6))
    for t in range(4):
        step = weights[:, t] * mask[:, t, None]
        total += np.minimum(step, covered).sum()
        covered += step
    result = penalty({"coverage": 1.0}, outputs["alignment"], outputs["mask"], mask.astype("f"))
    np.testing.assert_allclose(result, total / mask.sum(), rtol=1e-5)


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
    assert_close(ensemble.teacher_force(SOURCE, TARGET)[0], expected, roundings=1000)
    result = ensemble.search(SOURCE, GreedySearch(), np.array([5, 5], "int32"))
    best = ops.convert_to_numpy(result.ids)[:, 0]
    assert_close(ensemble.score(SOURCE, best), result.log_probabilities[:, 0], roundings=1000)


def test_an_ensemble_of_models_of_which_one_copies():
    models = [created("luong, fed"), created("transformer", pointer_generator=False)]
    ensemble = Ensemble(models)
    ensemble.build()
    known = np.where(TARGET < 9, TARGET, 1)
    probs = [np.exp(keras.ops.log_softmax(m.teacher_force(SOURCE, known)[0])) for m in models]
    probs[1] = np.pad(probs[1], [(0, 0), (0, 0), (0, 6)])
    expected = (probs[0] + probs[1]) / 2
    assert_close(np.exp(ensemble.teacher_force(SOURCE, known)[0]), expected)


def test_without_attention_there_is_nothing_to_copy():
    with pytest.raises(ValueError, match="set `attention`"):
        created("luong, fed", attention=None)
