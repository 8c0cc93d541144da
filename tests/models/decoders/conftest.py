"""A reference of the recurrent decoders' layers in NumPy's float64, row by row and step by step."""

import functools

import keras
import numpy as np
import pytest

from tests.models.attention import batches, reference
from tests.models.tensors import weights_by_name
from tests.tolerances import assert_close


class Reference:
    """Layers, initial states and attention of a decoder, from its weights and the formulas."""

    def __init__(self, decoder):
        self.settings = decoder.settings
        self.weights = weights_by_name(decoder)

    def start(self, memory):
        """The initial states: h and c of each layer."""
        finals = [final.astype("float64") for final in memory.get("final_states", [])]
        self.values = memory["values"][memory["mask"]].astype("float64")
        self.finals = finals or [self.values.mean(0)]
        names = "hc" if self.settings["cell"] == "lstm" else "h"
        states = []
        for i, name in enumerate(names):
            final = self.finals[i] if i < len(self.finals) else self.finals[0]
            whole = final @ self.weights[f"bridge/{name}/kernel"]
            whole = np.tanh(whole + self.weights[f"bridge/{name}/bias"])
            states.append(np.split(whole, self.settings["layers"]))
        self.states = [list(layer) for layer in zip(*states, strict=True)]

    def embed(self, token):
        """The embedding of a token, with unit variance at initialization."""
        table = self.weights["embedding/table"]
        return table[token] * np.sqrt(table.shape[1])

    def advance(self, x, extra):
        """Run all layers by one step, and return the output of the last."""
        for i in range(self.settings["layers"]):
            self.states[i] = self.cell(i, x, extra if i == 0 else np.zeros(0))
            output = self.states[i][0]
            if self.settings["residual"] and len(x) == len(output):
                output = output + x
            x = output
        return x

    def cell(self, i, x, extra):
        w = {n.split("/")[1]: v for n, v in self.weights.items() if n.startswith(f"layer_{i}/")}
        wx = x @ w["kernel"] + w["bias"]
        if self.settings["cell"] == "rnn":
            hidden = np.concatenate([self.states[i][0], extra])
            return [np.tanh(wx + hidden @ w["recurrent_kernel"])]
        if self.settings["cell"] == "lstm":
            h, c = self.states[i]
            z = wx + np.concatenate([h, extra]) @ w["recurrent_kernel"]
            gate_i, gate_f, new, gate_o = np.split(z, 4)
            c = reference.sigmoid(gate_f) * c + reference.sigmoid(gate_i) * np.tanh(new)
            return [reference.sigmoid(gate_o) * np.tanh(c), c]
        (h,) = self.states[i]
        if len(extra):
            wx = wx + extra @ w["extra_kernel"]
        (xz, xr, xn), (hz, hr, hn) = np.split(wx, 3), np.split(h @ w["recurrent_kernel"], 3)
        z, r = reference.sigmoid(xz + hz), reference.sigmoid(xr + hr)
        new = np.tanh(xn + r * (hn + w["reset_bias"]))
        return [z * h + (1 - z) * new]

    def attend(self, query):
        """Return context and weights for dot and general, several heads, or without attention."""
        if self.settings["attention"] is None:
            return self.finals[0][-self.values.shape[1] :], np.zeros(len(self.values))
        parts = {
            name.removeprefix("attention/"): weight
            for name, weight in self.weights.items()
            if name.startswith("attention/")
        }
        if "project_query/kernel" in parts:
            heads = self.settings["attention"]["heads"]
            context, weights = batches.multi_head(parts, heads, query, self.values)
            return context, weights.mean(axis=0)
        score = reference.dot
        if "score/kernel" in parts:
            score = functools.partial(reference.general, W=parts["score/kernel"].T)
        return reference.attend(query, self.values, self.values, score, reference.softmax)

    def logits(self, hidden):
        if self.settings["tied"]:
            return hidden @ self.weights["embedding/table"].T + self.weights["logits_bias"]
        return hidden @ self.weights["logits/kernel"] + self.weights["logits/bias"]


def check(decoder, tokens, memory, run):
    """Compare logits and alignments of a batch, row by row, with steps in NumPy."""
    logits, alignments = (np.asarray(x) for x in decoder.unroll(tokens, memory))
    for row in range(len(tokens)):
        one = keras.tree.map_structure(lambda x, row=row: x[row], memory)
        layers = Reference(decoder)
        layers.start(one)
        expected, weights = (np.array(x) for x in run(layers, tokens[row]))
        source = weights.shape[1]
        assert_close(logits[row], expected)
        assert_close(alignments[row, :, :source], weights)
        assert (alignments[row, :, source:] == 0).all()


def create_memory(depth=5, final_depth=6, states=2, seed=11):
    """Make a memory of two rows, the second padded; ``states`` are those of the encoder."""
    random = np.random.default_rng(seed)
    mask = np.array([[1, 1, 1], [1, 1, 0]], bool)
    created = {
        "values": random.normal(size=(2, 3, depth)).astype("float32") * mask[..., None],
        "mask": mask,
    }
    if states:
        created["final_states"] = [
            random.normal(size=(2, final_depth)).astype("float32") for _ in range(states)
        ]
    return created


@pytest.fixture
def equals_reference():
    return check


@pytest.fixture
def memory():
    return create_memory
