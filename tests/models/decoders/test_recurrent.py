import itertools

import keras
import numpy as np
import pytest

from models.decoders import RecurrentDecoder

RANDOM = np.random.default_rng(11)
TOKENS = np.array([[2, 5, 6, 7], [2, 4, 3, 0]], "int32")
VARIANTS = list(itertools.product([1, 2], [True, False], ["general", "dot"]))


def make(layers=1, input_feeding=True, score="general", **settings):
    decoder = RecurrentDecoder(
        9,
        memory_depth=5,
        final_depth=6,
        embedding=3,
        units=5,
        layers=layers,
        input_feeding=input_feeding,
        attention={"score": score},
        **settings,
    )
    decoder.build()
    return decoder


def memory():
    mask = np.array([[1, 1, 1], [1, 1, 0]], bool)
    return {
        "values": RANDOM.normal(size=(2, 3, 5)).astype("float32") * mask[..., None],
        "mask": mask,
        "final_states": [RANDOM.normal(size=(2, 6)).astype("float32") for _ in range(2)],
    }


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference(decoder, tokens, memory):
    """Luong et al. 2015, §3, for one row, in float64: logits and alignments."""
    as64 = {w.path.split("/", 1)[1]: np.asarray(w, "float64") for w in decoder.weights}
    units, layers = decoder.units, len(decoder.cells)
    values = memory["values"][memory["mask"]].astype("float64")
    starts = [
        np.tanh(final @ as64[f"bridge_{name}/kernel"] + as64[f"bridge_{name}/bias"])
        for name, final in zip("hc", memory["final_states"], strict=True)
    ]
    states = [[s[i * units : (i + 1) * units] for s in starts] for i in range(layers)]
    fed, logits, alignments = np.zeros(units), [], []
    for token in tokens:
        x = as64["embedding/table"][token]
        for i, state in enumerate(states):
            h, c = state
            hidden = np.concatenate([h, fed]) if i == 0 and decoder.input_feeding else h
            z = x @ as64[f"layer_{i}/kernel"] + as64[f"layer_{i}/bias"]
            z = z + hidden @ as64[f"layer_{i}/recurrent_kernel"]
            gate_i, gate_f, new, gate_o = np.split(z, 4)
            c = sigmoid(gate_f) * c + sigmoid(gate_i) * np.tanh(new)
            x = sigmoid(gate_o) * np.tanh(c)
            states[i] = [x, c]
        keys = values
        if "attention/score/kernel" in as64:
            keys = values @ as64["attention/score/kernel"]
        weights = np.exp(keys @ x)
        weights /= weights.sum()
        fed = np.tanh(np.concatenate([weights @ values, x]) @ as64["combine/kernel"])
        logits.append(fed @ as64["logits/kernel"] + as64["logits/bias"])
        alignments.append(weights)
    return np.array(logits), np.array(alignments)


@pytest.mark.parametrize(("layers", "input_feeding", "score"), VARIANTS)
def test_unroll_equals_the_paper(layers, input_feeding, score):
    decoder, seen = make(layers, input_feeding, score), memory()
    logits, alignments = decoder.unroll(TOKENS, seen)
    for row in range(2):
        one = {
            "values": seen["values"][row],
            "mask": seen["mask"][row],
            "final_states": [f[row] for f in seen["final_states"]],
        }
        expected, weights = reference(decoder, TOKENS[row], one)
        np.testing.assert_allclose(logits[row], expected, atol=1e-5)
        np.testing.assert_allclose(alignments[row, :, : weights.shape[1]], weights, atol=1e-5)


@pytest.mark.parametrize(("layers", "input_feeding", "score"), VARIANTS)
def test_steps_equal_unroll(layers, input_feeding, score):
    decoder, seen = make(layers, input_feeding, score), memory()
    logits, alignments = decoder.unroll(TOKENS, seen)
    state = decoder.start(seen)
    for t in range(TOKENS.shape[1]):
        step_logits, state, alignment = decoder.step(TOKENS[:, t], state)
        np.testing.assert_allclose(step_logits, logits[:, t], atol=1e-5)
        np.testing.assert_allclose(alignment, alignments[:, t], atol=1e-5)


def test_hypotheses_share_one_memory():
    decoder, seen = make(2), memory()
    state = decoder.start(seen)
    single, _, _ = decoder.step(TOKENS[:, 1], state)
    doubled = {
        name: value
        if name == "memory"
        else keras.tree.map_structure(lambda x: keras.ops.repeat(x, 2, axis=0), value)
        for name, value in state.items()
    }
    logits, _, alignment = decoder.step(np.repeat(TOKENS[:, 1], 2), doubled)
    np.testing.assert_allclose(logits[::2], single, atol=1e-5)
    np.testing.assert_allclose(logits[1::2], single, atol=1e-5)
    assert alignment.shape == (4, 3)


def test_without_feeding_the_attentional_state_does_not_come_back():
    assert "fed" in make(input_feeding=True).start(memory())
    assert "fed" not in make(input_feeding=False).start(memory())


def test_dropout_between_layers_differs_between_steps():
    decoder = make(2, dropout=0.5)
    tokens = np.zeros((2, 4), "int32")
    (mask,) = decoder._between_masks(tokens, "float32", training=True)
    mask = keras.ops.convert_to_numpy(mask)
    assert set(np.unique(mask)) == {0.0, 2.0}
    assert not (mask[0] == mask[1]).all()
    assert decoder._between_masks(tokens, "float32", training=False) == ()


def test_config_round_trip():
    decoder = make(2, False, "dot", dropout=0.2)
    assert RecurrentDecoder.from_config(decoder.get_config()).get_config() == decoder.get_config()
