"""Scores that depend on the attention of all previous steps (See et al. 2017, eq. 11)."""

import keras
import numpy as np
import pytest
from keras import ops

from regard.models.attention import Attention, MultiHeadAttention
from regard.models.attention.scores.perceptron import AdditiveScore
from regard.models.decoders import BahdanauDecoder, LuongDecoder
from regard.models.encoders import RecurrentEncoder
from regard.models.search import BeamSearch, SamplingSearch
from regard.models.seq2seq import Seq2Seq, shift
from tests.models.attention import reference
from tests.models.tensors import gradients
from tests.tolerances import assert_close

SOURCE = np.array([[5, 8, 7, 4, 3], [8, 6, 3, 0, 0]], "int32")
TARGET = np.array([[8, 7, 3, 0], [8, 5, 6, 3]], "int32")
KINDS = {
    "luong": (LuongDecoder, {"score": {"type": "concat", "coverage": True}}),
    "bahdanau": (BahdanauDecoder, {"score": {"type": "additive", "units": 3, "coverage": True}}),
    "bahdanau, local": (
        BahdanauDecoder,
        {
            "score": {"type": "additive", "coverage": True},
            "alignment": {"type": "local_m", "window": 1},
        },
    ),
}


def created(kind, **changes):
    make, attention = KINDS[kind]
    keras.utils.set_random_seed(5)
    encoder = RecurrentEncoder(9, embedding=4, units=4)
    options = {"embedding": 4, "units": 8, "attention": attention, **changes}
    model = Seq2Seq(encoder, make(9, encoder.depth, encoder.final_depth, **options))
    model.build()
    # Large enough to change what is attended to.
    model.decoder.attention.score.coverage_kernel.assign(
        4 * model.decoder.attention.score.coverage_kernel
    )
    return model


def test_as_its_formula():
    score = AdditiveScore(units=3, coverage=True)
    random = np.random.default_rng(1)
    query, keys = random.normal(size=(2, 3, 4)), random.normal(size=(2, 5, 6))
    coverage = random.random((2, 3, 5))
    score.build((None, None, 4), (None, None, 6))
    weights = {w.name: np.asarray(w, "float64") for w in score.weights}
    matrices = weights["query_kernel"].T, weights["key_kernel"].T
    rest = weights["coverage_kernel"][0], weights["bias"], weights["vector"][:, 0]
    expected = np.zeros((2, 3, 5))
    for b, t, s in np.ndindex(2, 3, 5):
        inputs = query[b, t], keys[b, s], coverage[b, t, s]
        expected[b, t, s] = reference.coverage(*inputs, *matrices, *rest)
    result = score.match(query.astype("f"), score.prepare(keys.astype("f")), coverage.astype("f"))
    assert_close(result, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_equal_unroll_and_depend_on_the_sum_of_the_weights(kind):
    model = created(kind)
    memory, tokens = model.encode(SOURCE), shift(TARGET)
    logits, alignments = model.decoder.unroll(tokens, memory)
    state, total = model.decoder.start(memory), np.zeros((2, 5))
    for t in range(4):
        assert_close(state["coverage"], total)
        before = state
        result, state, alignment = model.decoder.step(tokens[:, t], state)
        assert_close(result, logits[:, t])
        assert_close(alignment, alignments[:, t])
        total += np.asarray(alignment)
        uncovered = {**before, "coverage": ops.zeros((2, 5))}
        other = model.decoder.step(tokens[:, t], uncovered)[2]
        if "local" not in kind:
            assert (np.abs(alignment - other).max() > 1e-3) == (t > 0)


@pytest.mark.parametrize("kind", ["luong", "bahdanau"])
@pytest.mark.parametrize("search", [BeamSearch(3, coverage_penalty=0.2), SamplingSearch(samples=2)])
def test_scores_of_a_search_are_those_of_forced_scoring(kind, search):
    model = created(kind)
    result = model.search(SOURCE, search, np.array([6, 6], "int32"))
    best = ops.convert_to_numpy(result.ids)[:, 0]
    expected = result.log_probabilities[:, 0]
    assert_close(model.score(SOURCE, best), expected, roundings=1000)
    alone = model.search(SOURCE[1:, :3], search, np.array([6], "int32"), keys=np.array([1]))
    assert_close(alone.log_probabilities[0], result.log_probabilities[1], roundings=1000)


def test_it_is_trained():
    model, data = created("luong"), {"source": SOURCE, "target": TARGET}
    result = gradients(lambda: model.compute_loss(data, None, model(data)), layer=model)
    paths = [weight.path for weight in model.trainable_weights]
    kernel = result[paths.index(model.decoder.attention.score.coverage_kernel.path)]
    assert np.isfinite(kernel).all()
    assert np.abs(kernel).min() > 0


def test_where_nothing_accumulates_it_is_refused():
    query = np.zeros((1, 2, 4), "float32")
    with pytest.raises(ValueError, match="needs a recurrent decoder"):
        Attention(score=KINDS["luong"][1]["score"])(query, query)
    with pytest.raises(ValueError, match="needs a recurrent decoder"):
        MultiHeadAttention(2, 4, score=KINDS["luong"][1]["score"])(query, query)
    model = created("luong", input_feeding=False)
    with pytest.raises(ValueError, match="needs a recurrent decoder"):
        model.teacher_force(SOURCE, TARGET)
