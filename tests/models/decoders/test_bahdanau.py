import keras
import numpy as np
import pytest

from regard.models.decoders import BahdanauDecoder
from tests.models.attention import reference

TOKENS = np.array([[2, 5, 6, 7], [2, 4, 3, 0]], "int32")
GENERAL = {"score": "general"}
# Pairwise: the formulas of two options meet in at least one variant.
VARIANTS = [
    {"readout": "maxout", "attention": GENERAL, "cell": "lstm"},
    {"readout": "tanh", "attention": GENERAL, "cell": "gru", "layers": 2},
    {"readout": "tanh", "attention": None, "cell": "lstm"},
    {"readout": "maxout", "attention": None, "cell": "gru", "layers": 2},
    {"residual": True, "layers": 2, "embedding": 4, "cell": "gru"},
    {"residual": True, "layers": 2, "embedding": 3, "cell": "lstm"},
    {"tied": True, "embedding": 4},
]


def make(**settings):
    keras.utils.set_random_seed(3)
    settings = {"embedding": 3, "units": 4, "attention": GENERAL, **settings}
    decoder = BahdanauDecoder(9, memory_depth=5, final_depth=6, **settings)
    decoder.build()
    return decoder


def paper(layers, tokens):
    """Bahdanau et al. 2015, §3.1 and §A.2.2, for one row: logits and alignments.

    A state is that of the top layer, and its output with the residual connection.
    """

    def attend(s):
        return layers.attend(s[0])

    def f(s, y, c):
        output = layers.advance(y, c)
        return layers.states[-1][0], output

    def g(y, s, c):
        t = np.concatenate([s[1], y, c]) @ layers.weights["readout/kernel"]
        t = t + layers.weights["readout/bias"]
        is_maxout = layers.settings["readout"] == "maxout"
        return reference.maxout(t) if is_maxout else np.tanh(t)

    s, logits, alignments = (layers.states[-1][0], None), [], []
    for token in tokens:
        s, t, a = reference.bahdanau_step(layers.embed(token), s, attend, f, g)
        logits.append(layers.logits(t))
        alignments.append(a)
    return logits, alignments


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_equals_the_paper(settings, memory, equals_reference):
    equals_reference(make(**settings), TOKENS, memory(), paper)


def test_the_first_attention_precedes_the_first_token(memory):
    decoder, source_memory = make(), memory()
    other = np.where(TOKENS == 2, 8, TOKENS)
    _, alignments = decoder.unroll(TOKENS, source_memory)
    _, others = decoder.unroll(other, source_memory)
    np.testing.assert_array_equal(alignments[:, 0], others[:, 0])
    assert not np.allclose(alignments[:, 1], others[:, 1])
