import keras
import numpy as np
import pytest

from regard.models.decoders import LuongDecoder
from tests.models.decoders import reference
from tests.models.tensors import gradients
from tests.tolerances import assert_close

TOKENS = np.array([[2, 5, 6, 7], [2, 4, 3, 0]], "int32")
GENERAL, DOT = {"score": "general"}, {"score": "dot"}
HEADS = {"score": "scaled_dot", "heads": 5}
# Pairwise: the formulas of two options meet in at least one variant.
VARIANTS = [
    {"attention": GENERAL, "cell": "lstm"},
    {"attention": DOT, "cell": "gru", "layers": 2},
    {"attention": None, "cell": "lstm", "layers": 2},
    {"attention": None, "cell": "gru", "input_feeding": False},
    {"attention": GENERAL, "cell": "gru", "layers": 2, "input_feeding": False},
    {"attention": DOT, "cell": "lstm", "input_feeding": False},
    {"residual": True, "layers": 2, "embedding": 3, "cell": "lstm"},
    {"residual": True, "layers": 2, "embedding": 5, "cell": "gru"},
    {"residual": True, "layers": 2, "embedding": 5, "attention": DOT, "input_feeding": False},
    {"tied": True, "embedding": 5, "attention": DOT},
    {"attention": HEADS, "cell": "rnn"},
    {"attention": HEADS, "cell": "gru", "input_feeding": False},
]


def make(**settings):
    keras.utils.set_random_seed(3)
    settings = {"embedding": 3, "units": 5, "attention": GENERAL, **settings}
    decoder = LuongDecoder(9, memory_depth=5, final_depth=6, **settings)
    decoder.build()
    if decoder.tied:
        decoder.logits_bias.assign(np.linspace(-1, 1, 9))
    return decoder


def paper(parts, tokens):
    """Luong et al. 2015, §3, for one row: logits and alignments."""
    feeding = parts.settings["input_feeding"]
    attentional, logits, alignments = np.zeros(5), [], []
    for token in tokens:
        attentional, _, weights = reference.luong_step(
            parts.embed(token),
            parts.states[-1][0],
            attentional if feeding else np.zeros(0),
            parts.attend,
            lambda y, extra, h: parts.advance(y, extra),
            parts.weights["combine/kernel"].T,
        )
        logits.append(parts.logits(attentional))
        alignments.append(weights)
    return logits, alignments


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_equals_the_paper(settings, memory, equals_reference):
    equals_reference(make(**settings), TOKENS, memory(), paper)


@pytest.mark.parametrize("settings", [each for each in VARIANTS if each.get("attention") != HEADS])
def test_a_folded_context_equals_that_of_each_step(settings, memory):
    """Logits, alignments, gradients, and a step."""
    decoder, source_memory = make(**settings), memory()
    taste = np.random.default_rng(2).normal(size=(2, 4, 9)).astype("float32")

    def results():
        def value():
            return keras.ops.sum(decoder.unroll(TOKENS, source_memory)[0] * taste)

        logits, state, _ = decoder.step(TOKENS[:, 0], decoder.start(source_memory))
        logits, _, _ = decoder.step(TOKENS[:, 1], state)
        unrolled = decoder.unroll(TOKENS, source_memory)
        return [logits, *unrolled, *gradients(value, layer=decoder)]

    assert decoder.folds_context
    folded = results()
    decoder.folds_context = False
    for ours, expected in zip(folded, results(), strict=True):
        assert_close(ours, expected)


def test_without_attention_the_context_is_the_last_state_of_the_top_layer(memory):
    source_memory = memory(final_depth=10)  # two layers of the memory's depth
    decoder = LuongDecoder(9, 5, 10, embedding=3, units=5, attention=None)
    decoder.build()
    state = decoder.start(source_memory)
    expected = source_memory["final_states"][0][:, 5:] @ np.asarray(decoder.combine.kernel)[:5]
    assert_close(state["memory"]["context"][:, 0], expected)
