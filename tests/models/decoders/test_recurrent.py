"""Properties of every recurrent decoder."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.models.decoders import BahdanauDecoder, LuongDecoder
from tests.models.tensors import gradients
from tests.tolerances import assert_close

TOKENS = np.array([[2, 5, 6, 7], [2, 4, 3, 0]], "int32")
PATHS = {"luong": LuongDecoder, "bahdanau": BahdanauDecoder}
GENERAL = {"score": "general"}
DEEP = {"layers": 2, "cell": "gru", "residual": True}
LOCAL = {"alignment": {"type": "local_p", "window": 1}}
# Every option at least once, and in pairs with those that it could disturb.
VARIANTS = [
    ("luong", {}),
    ("luong", {**DEEP, "embedding": 5}),
    ("luong", {"input_feeding": False, "layers": 2, "attention": {"score": "dot", **LOCAL}}),
    ("luong", {"attention": None, "tied": True, "embedding": 5}),
    ("luong", {"attention": None, "input_feeding": False, "residual": True, "embedding": 5}),
    ("luong", {"attention": {"score": "additive", "heads": 5}, "cell": "rnn", "layers": 2}),
    (
        "luong",
        {
            "attention": {"score": {"type": "low_rank", "rank": 2}, "values": "split"},
            "initial_state": "zeros",
        },
    ),
    (
        "luong",
        {
            "attention": {"score": "dot", "alignment": "thresholded", "heads": 5},
            "input_feeding": False,
        },
    ),
    ("bahdanau", {**DEEP, "readout": "tanh"}),
    ("bahdanau", {"attention": None, "layers": 2}),
    ("bahdanau", {"attention": {"score": "scaled_dot", "heads": 5, **LOCAL}, "cell": "rnn"}),
    ("bahdanau", {"attention": {"score": {"type": "additive", "layers": 2}, "values": "split"}}),
    (
        "bahdanau",
        {
            "attention": {"alignment": {"type": "hard", "inference": "sample"}},
            "initial_state": "zeros",
        },
    ),
]
every_variant = pytest.mark.parametrize(("path", "settings"), VARIANTS, ids=str)
every_path = pytest.mark.parametrize("path", PATHS)


@pytest.fixture(scope="module", params=VARIANTS, ids=str)
def decoder(request):
    """A decoder of each variant, for all tests that do not change it."""
    path, settings = request.param
    return make(path, **settings)


def make(path, **settings):
    keras.utils.set_random_seed(5)
    final_depth = settings.pop("final_depth", 6)
    settings = {"embedding": 3, "units": 5, "attention": GENERAL, **settings}
    decoder = PATHS[path](9, 5, final_depth, **settings)
    decoder.build()
    return decoder


def rows(memory, count):
    """The memory with every row repeated."""
    return keras.tree.map_structure(lambda x: np.repeat(x, count, axis=0), memory)


def test_steps_equal_unroll(decoder, memory):
    source_memory = memory()
    logits, alignments = decoder.unroll(TOKENS, source_memory)
    state = decoder.start(source_memory)
    for t in range(TOKENS.shape[1]):
        step_logits, state, alignment = decoder.step(TOKENS[:, t], state)
        assert_close(step_logits, logits[:, t])
        assert_close(alignment, alignments[:, t])


def test_hypotheses_share_one_memory(decoder, memory):
    source_memory = memory()
    tokens = np.array([4, 5, 6, 7], "int32")  # two for each row
    state = decoder.start(source_memory)
    doubled = {name: value if name == "memory" else rows(value, 2) for name, value in state.items()}
    logits, doubled, _ = decoder.step(tokens, doubled)
    logits, _, alignment = decoder.step(tokens, doubled)
    copied = decoder.start(rows(source_memory, 2))
    _, copied, _ = decoder.step(tokens, copied)
    expected, _, expected_alignment = decoder.step(tokens, copied)
    assert_close(logits, expected)
    assert_close(alignment, expected_alignment)


def test_padding_does_not_change_a_row(decoder, memory):
    source_memory = memory()
    logits, alignments = decoder.unroll(TOKENS, source_memory)
    one = keras.tree.map_structure(lambda x: x[1:], source_memory)
    one |= {"values": one["values"][:, :2], "mask": one["mask"][:, :2]}
    alone_logits, alone_alignments = decoder.unroll(TOKENS[1:], one)
    assert_close(logits[1:], alone_logits)
    assert_close(alignments[1:, :, :2], alone_alignments)


@pytest.mark.parametrize(("path", "settings"), [VARIANTS[i] for i in (1, 11)], ids=str)
def test_a_graph_of_unknown_sizes_equals_eager(path, settings, memory):
    decoder, inputs = make(path, **settings), (TOKENS, memory())
    shapes = keras.tree.map_structure(
        lambda x: tf.TensorSpec([None, None, *x.shape[2:]], x.dtype), inputs
    )
    graph = tf.function(decoder.unroll, input_signature=shapes)
    for ours, expected in zip(graph(*inputs), decoder.unroll(*inputs), strict=True):
        assert_close(ours, expected)


@every_path
@pytest.mark.parametrize("attention", [GENERAL, None])
def test_a_memory_without_final_states_starts_from_its_mean(path, attention, memory):
    decoder = make(path, attention=attention, final_depth=0)
    source_memory = memory(states=0)
    values = source_memory["values"]
    noisy = {**source_memory, "values": np.where(source_memory["mask"][..., None], values, 7.0)}
    mean = np.stack([values[0].mean(0), values[1, :2].mean(0)])
    other = make(path, attention=attention, final_depth=5)
    other.set_weights(decoder.get_weights())
    expected, _ = other.unroll(TOKENS, {**source_memory, "final_states": [mean, mean]})
    assert_close(decoder.unroll(TOKENS, noisy)[0], expected)


@every_path
def test_a_zero_initial_state_does_not_depend_on_the_source(path, memory):
    decoder = make(path, initial_state="zeros", layers=2)
    np.testing.assert_array_equal(decoder.start(memory())["cells"], np.zeros((2, 2, 2, 5)))
    assert not any("bridge" in weight.path for weight in decoder.weights)


@every_variant
def test_gradients_are_finite_and_reach_every_weight(path, settings, memory):
    decoder, source_memory = make(path, **settings, dropout=0.3), memory()
    source_memory["mask"][1] = False  # a row without any source

    def value():
        logits, _ = decoder.unroll(TOKENS, source_memory, training=True)
        return keras.ops.sum(keras.ops.log_softmax(logits)[..., 3])

    for gradient in gradients(value, layer=decoder):
        assert np.isfinite(gradient).all()
        assert np.any(gradient)


HARD = {**GENERAL, "alignment": {"type": "hard", "training": "reinforce", "expectation": 0}}


@pytest.mark.parametrize(
    ("path", "settings"),
    [("luong", {}), ("luong", {"input_feeding": False}), ("bahdanau", {})],
    ids=str,
)
def test_hard_alignments_come_with_their_distribution(path, settings, memory):
    decoder = make(path, attention=HARD, **settings)
    assert decoder.stochastic
    assert not make(path, **settings).stochastic
    source_memory = rows(memory(), 20)
    tokens = np.repeat(TOKENS, 20, axis=0)
    unrolled = decoder.unroll_with_distribution(tokens, source_memory, training=True)
    logits, alignments, distribution = (np.asarray(x) for x in unrolled)
    assert logits.shape == (40, 4, 9)
    assert set(np.unique(alignments)) == {0.0, 1.0}
    assert_close(alignments.sum(-1), 1)
    assert_close(distribution.sum(-1), 1)
    assert (distribution[20:, :, 2] == 0).all()  # padding
    assert (alignments.argmax(-1) != distribution.argmax(-1)).any()  # drawn, not the best
    # The rows are equal except for the sample.
    assert_close(distribution[:20, 0], distribution[:1, 0].repeat(20, 0))
    assert len(np.unique(alignments[:20, 0], axis=0)) > 1
    _, still, best = decoder.unroll_with_distribution(tokens, source_memory)
    np.testing.assert_array_equal(np.argmax(still, -1), np.argmax(best, -1))


@every_path
def test_hard_attention_of_several_heads_trains_straight_through(path, memory):
    hard = {"type": "hard", "training": "straight_through", "expectation": 0.0}
    decoder = make(path, attention={**GENERAL, "heads": 5, "alignment": hard})
    source_memory = rows(memory(), 20)
    tokens = np.repeat(TOKENS, 20, axis=0)
    trained = tf.function(lambda: decoder.unroll(tokens, source_memory, training=True)[1])
    alignments, others = np.asarray(trained()), np.asarray(trained())
    assert_close(alignments * 5, np.round(alignments * 5))
    assert len(np.unique(alignments[:20, 0], axis=0)) > 1  # every row has samples of its own
    assert (alignments != others).any()
    with pytest.raises(ValueError, match="use one head"):
        make(path, attention={**HARD, "heads": 5})


@every_path
def test_soft_alignments_are_their_own_distribution(path, memory):
    _, alignments, distribution = make(path).unroll_with_distribution(TOKENS, memory())
    assert alignments is distribution


def test_dropout_between_layers_differs_between_steps():
    decoder = make("luong", layers=2, dropout=0.5)
    masks = decoder._dropout_masks(TOKENS, "float32", training=True)
    (mask,) = (np.asarray(mask) for mask in masks)
    assert set(np.unique(mask)) == {0.0, 2.0}
    assert not (mask[0] == mask[1]).all()
    assert not decoder._dropout_masks(TOKENS, "float32", training=False)
