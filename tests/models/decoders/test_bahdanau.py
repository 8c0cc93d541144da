import keras
import numpy as np
import pytest

from regard.models.decoders import BahdanauDecoder
from tests.models.decoders import reference

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


def paper(parts, tokens):
    """Bahdanau et al. 2015, §3.1 and §A.2.2, for one row: logits and alignments."""
    depths = np.cumsum([parts.settings[name] for name in ("units", "embedding")])
    kernels = [each.T for each in np.split(parts.weights["readout/kernel"], depths)]
    readout = getattr(reference, f"{parts.settings['readout']}_readout")
    logits, alignments = [], []
    for token in tokens:
        read, _, weights = reference.bahdanau_step(
            parts.embed(token),
            parts.states[-1][0],
            parts.attend,
            lambda y, c, s: parts.advance(y, c),
            lambda *inputs: readout(*inputs, *kernels, parts.weights["readout/bias"]),
        )
        logits.append(parts.logits(read))
        alignments.append(weights)
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
