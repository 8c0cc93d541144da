import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import config

from regard.models.decoders import (
    BahdanauDecoder,
    FeedForwardDecoder,
    LuongDecoder,
    TransformerDecoder,
)
from regard.models.encoders import EmbeddingEncoder, RecurrentEncoder, TransformerEncoder
from regard.models.layers.embeddings import TokenEmbedding
from regard.models.losses import penalty
from regard.models.search import BeamSearch, GreedySearch
from regard.models.seq2seq import Seq2Seq, shift
from regard.models.vocabulary import BOS
from tests.marks import slow
from tests.models.decoders import reference
from tests.models.tensors import train
from tests.tolerances import assert_close, close_to

SOURCE = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")
TARGET = np.array([[4, 5, 3, 0], [7, 6, 5, 3]], "int32")
RECURRENT = {"embedding": 8, "units": 8}
TRANSFORMER = {"embedding": 8, "heads": 2, "feed_forward": 16, "layers": 2}
PAIRS = {
    "luong": (RecurrentEncoder, RECURRENT, LuongDecoder, RECURRENT),
    "bahdanau": (RecurrentEncoder, RECURRENT, BahdanauDecoder, RECURRENT),
    "transformer": (TransformerEncoder, TRANSFORMER, TransformerDecoder, TRANSFORMER),
    "crossed": (TransformerEncoder, TRANSFORMER, LuongDecoder, RECURRENT),
    "feed-forward": (
        EmbeddingEncoder,
        {"embedding": 8},
        FeedForwardDecoder,
        {**RECURRENT, "attention": {}},
    ),
    "crossed back": (RecurrentEncoder, RECURRENT, TransformerDecoder, TRANSFORMER),
}

# The softmax of the others also reads the source.
TIED = [pair for pair in PAIRS if pair != "feed-forward"]


def make(pair="luong", dtype="float32", attention="default", tied=False, **settings):
    keras.utils.set_random_seed(2)
    encoder_class, encoder_options, decoder_class, decoder_options = PAIRS[pair]
    encoder = encoder_class(9, **encoder_options, dtype=dtype)
    own = dict(decoder_options) if attention == "default" else {**decoder_options, **attention}
    depths = {"memory_depth": encoder.depth, "final_depth": encoder.final_depth}
    decoder = decoder_class(9, **depths, tied=tied, **own, dtype=dtype)
    model = Seq2Seq(encoder, decoder, dtype=dtype, **settings)
    model.build()
    return model


@pytest.fixture(scope="module", params=PAIRS)
def model(request):
    """A model of each pair, for all tests that do not change it."""
    return make(request.param)


@pytest.mark.parametrize("pair", PAIRS)
def test_keras_compiles_with_xla_what_it_can_differentiate(pair, monkeypatch):
    """``jit_compile="auto"`` asks the layers if there is a GPU."""
    devices = [tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: devices)
    # A training of another test may have made the process deterministic, which XLA is not.
    monkeypatch.setattr(config, "is_op_determinism_enabled", lambda: False)
    model = make(pair)
    model.compile(optimizer="adam", jit_compile="auto")
    assert model.jit_compile == (pair in ("transformer", "feed-forward"))


def logits_of(model):
    result = model({"source": SOURCE, "target": TARGET})["logits"]
    return keras.ops.convert_to_numpy(keras.ops.cast(result, "float32"))


def test_the_decoder_reads_the_target_one_step_late():
    np.testing.assert_array_equal(shift(TARGET), [[2, 4, 5, 0], [2, 7, 6, 5]])


def test_score_is_the_sum_of_log_probabilities(model):
    logits = logits_of(model)
    logp = logits - np.log(np.exp(logits.astype("float64")).sum(-1, keepdims=True))
    expected = [
        sum(logp[row, t, token] for t, token in enumerate(TARGET[row]) if token) for row in range(2)
    ]
    assert_close(model.score(SOURCE, TARGET), expected, roundings=1000)


def test_score_is_that_of_documented_teacher_forcing(model):
    """Step by step, with each token of the target as the next input."""

    def step(token, state):
        logits, state, _ = model.decoder.step(np.array([token], "int32"), state)
        return np.asarray(keras.ops.log_softmax(logits)[0], "float64"), state

    state = model.decoder.start(model.encode(SOURCE[:1]), 3, 1)
    expected = reference.teacher_forcing(step, state, TARGET[0, :3], BOS)
    scores, _ = model.score_with_alignment(SOURCE[:1], TARGET[:1])
    assert_close(scores[0, :3], expected)


def test_padding_changes_no_score(model):
    alone = model.score(SOURCE[1:, :2], TARGET[1:])
    assert_close(model.score(SOURCE, TARGET)[1:], alone)


def test_loss_and_metrics_are_means_over_real_pieces():
    model = make(label_smoothing=0.2)
    model.compile(optimizer="sgd")
    results = model.evaluate(
        {"source": SOURCE, "target": TARGET}, batch_size=1, verbose=0, return_dict=True
    )
    total = float(np.sum(model.score(SOURCE, TARGET)))
    assert results["plain_loss"] == close_to(-total / 7)
    hits = (logits_of(model).argmax(-1) == TARGET) & (TARGET != 0)
    assert results["accuracy"] == close_to(hits.sum() / 7)


@pytest.mark.parametrize(
    ("pair", "dtype"),
    [
        ("luong", "float32"),
        slow("luong", "mixed_float16"),
        slow("bahdanau", "mixed_bfloat16"),
        slow("transformer", "mixed_bfloat16"),
    ],
)
def test_it_learns_by_heart(pair, dtype):
    model = make(pair, dtype)
    model.compile(optimizer=keras.optimizers.Adam(0.03))
    train(model, {"source": SOURCE, "target": TARGET}, 60)
    np.testing.assert_array_equal(logits_of(model).argmax(-1)[TARGET != 0], TARGET[TARGET != 0])
    assert all(w.dtype == "float32" for w in model.trainable_weights)


def test_saved_and_loaded(tmp_path):
    model = make("transformer", tied=True, share_embeddings=True)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert_close(again.score(SOURCE, TARGET), model.score(SOURCE, TARGET))


@pytest.mark.parametrize("pair", TIED)
def test_shared_embeddings_are_one_matrix(pair):
    apart, shared = make(pair), make(pair, tied=True, share_embeddings=True)
    assert shared.encoder.embedding.table is shared.decoder.embedding.table
    tables = [w for w in shared.trainable_weights if w.shape == (9, 8)]
    assert len(tables) == 1  # source, target and softmax
    assert sum(w.shape in ((9, 8), (8, 9)) for w in apart.trainable_weights) == 3


@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(3, 0.6)], ids=["greedy", "beam"])
@pytest.mark.parametrize("pair", TIED)
def test_a_search_transposes_tied_embeddings_once(pair, search, monkeypatch):
    """With the same result as a transposition per step; the rows end at different steps."""
    model = make(pair, tied=True)
    limits = np.array([2, 5], "int32")
    calls, columns = [], TokenEmbedding.columns
    monkeypatch.setattr(TokenEmbedding, "columns", lambda layer: calls.append(0) or columns(layer))
    once = model.search(SOURCE, search, limits, minimums=limits)
    assert len(calls) == 1
    monkeypatch.setattr(type(model.decoder), "prepare_output", lambda decoder: {})
    each = model.search(SOURCE, search, limits, minimums=limits)
    assert len(calls) == 1 + max(limits)
    np.testing.assert_array_equal(once.ids, each.ids)
    assert_close(once.scores, each.scores)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_copy_from_the_config_takes_the_weights(pair):
    """As the export does: the same weights in the same order."""
    model = make(pair, tied=pair in TIED, share_embeddings=True)
    again = Seq2Seq.from_config(model.get_config())
    again.build()
    again.set_weights(model.get_weights())
    assert_close(again.score(SOURCE, TARGET), model.score(SOURCE, TARGET))


@pytest.mark.parametrize("pair", ["luong", slow("bahdanau")])
def test_a_stochastic_decoder_is_rewarded(pair):
    hard = {"attention": {"alignment": {"type": "hard", "training": "reinforce"}}}
    model = make(pair, attention=hard, reinforce={"reward_weight": 2.0})
    result = model({"source": SOURCE, "target": TARGET}, training=True)
    samples = keras.ops.convert_to_numpy(result["alignment"])[TARGET != 0]
    np.testing.assert_array_equal(np.sort(samples, axis=-1)[:, -1], 1.0)
    np.testing.assert_array_equal(samples.sum(-1), 1.0)
    model.compile(optimizer=keras.optimizers.Adam(0.03))
    initial = model.get_weights()
    # The loss holds the reward, which falls as the baseline learns it; the nats a token do not.
    nats = train(model, {"source": SOURCE, "target": TARGET}, 60)
    assert nats[-1] < nats[0] / 2
    # The score's own weights learn, though the choice itself has no gradient.
    score = [w.path for w in model.decoder.attention.score.trainable_weights]
    changed = {
        weight.path: not np.allclose(old, weight)
        for old, weight in zip(initial, model.weights, strict=True)
    }
    assert score
    assert all(changed[path] for path in score)


def test_penalties_are_part_of_the_training_alone():
    looking = {"attention": {"score": "general"}}
    plain, penalised = (make(attention=looking, penalties=p) for p in ({}, {"coverage": 0.5}))
    penalised.set_weights(plain.get_weights())
    inputs = {"source": SOURCE, "target": TARGET}
    result = penalised(inputs)
    real = (TARGET != 0).astype("float32")
    expected = float(penalty({"coverage": 0.5}, result["alignment"], result["mask"], real))
    assert expected > 0.0
    losses = [
        [
            float(model.compute_loss(inputs, y_pred=model(inputs), training=training))
            for model in (plain, penalised)
        ]
        for training in (True, False)
    ]
    assert losses[0][1] == pytest.approx(losses[0][0] + expected, rel=1e-5)
    assert losses[1][1] == pytest.approx(losses[1][0])


def test_an_unknown_penalty():
    with pytest.raises(ValueError, match=r"Unknown penalty 'covrage'. Did you mean coverage"):
        make(penalties={"covrage": 1.0})


# The decoder of a source that begins with 5 first reads 8, of one that begins with 4 it reads 7.
FIRST = [(5, 8), (4, 7)]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_first_token_is_read_before_the_output(pair):
    plain, model = make(pair), make(pair, first_tokens=FIRST)
    model.set_weights(plain.get_weights())
    logits, alignment = model.teacher_force(SOURCE, TARGET)
    inputs = np.array([[BOS, 8, 4, 5, 0], [BOS, 7, 7, 6, 5]], "int32")
    expected = plain.decoder.unroll(inputs, plain.encode(SOURCE))
    assert_close(logits, np.asarray(expected[0])[:, 1:])
    assert_close(alignment, np.asarray(expected[1])[:, 1:])
    np.testing.assert_array_equal(model.decoder_inputs(SOURCE, TARGET), inputs)
    outputs = model({"source": SOURCE, "target": TARGET})
    assert_close(outputs["logits"], logits)


@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(3, 0.6, n_best=2)])
@pytest.mark.parametrize("pair", PAIRS)
def test_searches_with_first_tokens_find_what_forced_scoring_confirms(pair, search):
    model, limits = make(pair, first_tokens=FIRST), np.array([5, 3])
    result = model.search(SOURCE, search, limits)
    for number in range(search.hypotheses):
        ids = np.asarray(result.ids)[:, number]
        assert_close(model.score(SOURCE, ids), np.asarray(result.log_probabilities)[:, number])
    for row in range(2):
        single = model.search(SOURCE[row : row + 1], search, limits[row : row + 1])
        length = int(np.asarray(single.lengths)[0, 0])
        np.testing.assert_array_equal(
            np.asarray(single.ids)[0, 0, :length], np.asarray(result.ids)[row, 0, :length]
        )
    if isinstance(search, GreedySearch):
        first = np.asarray(model.teacher_force(SOURCE, np.asarray(result.ids)[:, 0])[0])[:, 0]
        best = first.copy()
        best[:, [0, BOS]] = -np.inf
        np.testing.assert_array_equal(np.asarray(result.ids)[:, 0, 0], best.argmax(axis=1))


def test_the_attention_of_a_first_token_belongs_to_the_beginning():
    plain, model = make("transformer"), make("transformer", first_tokens=FIRST)
    model.set_weights(plain.get_weights())
    weights = model.heads(SOURCE, TARGET)
    inputs = model.decoder_inputs(SOURCE, TARGET)
    expected = plain.decoder.heads(inputs, plain.encode(SOURCE))
    assert_close(weights["cross"], np.asarray(expected["cross"])[..., 1:, :])
    own = np.asarray(expected["target"])[..., 1:, :]
    begin = own[..., :2].sum(axis=-1, keepdims=True)
    assert_close(weights["target"], np.concatenate([begin, own[..., 2:]], axis=-1))
    assert_close(np.asarray(weights["target"])[0].sum(axis=-1), np.ones((2, 2, 4)))


def test_first_tokens_are_part_of_the_saved_model():
    model = make("transformer", first_tokens=FIRST)
    copy = Seq2Seq.from_config(model.get_config())
    copy.build()
    copy.set_weights(model.get_weights())
    assert_close(copy.score(SOURCE, TARGET), model.score(SOURCE, TARGET))


def test_a_source_that_names_no_first_token_has_that_of_the_first_pair():
    model = make("transformer", first_tokens=FIRST)
    source = np.array([[6, 5, 3, 0], [4, 3, 0, 0]], "int32")
    inputs = model.decoder_inputs(source, TARGET)
    np.testing.assert_array_equal(np.asarray(inputs)[:, :2], [[BOS, 8], [BOS, 7]])
