"""A decoder so small that every hypothesis can be enumerated, and its twin in NumPy float64."""

import itertools

import numpy as np
from keras import ops

from regard.models.search import Hypotheses
from regard.models.vocabulary import BOS, EOS, PAD


class Toy:
    """A recurrent network of random weights; a row's source is a bias of its own.

    Args:
        rows: how many sources.
        vocabulary: the size of the vocabulary, PAD, UNK, BOS and EOS among them.
        scale: the greater, the further the distributions are from uniform.
        seed: of the weights.
    """

    def __init__(self, rows=3, vocabulary=7, scale=1.0, seed=0):
        random = np.random.default_rng(seed)
        self.rows, self.vocabulary, depth, self.source = rows, vocabulary, 5, 4
        self.embedding = random.normal(size=(vocabulary, depth))
        self.recurrent = random.normal(size=(depth, depth)) / 2
        self.output = random.normal(size=(depth, vocabulary)) * scale
        self.attention = random.normal(size=(depth, self.source)) * 2
        self.bias = random.normal(size=(rows, depth))
        self.mask = np.arange(self.source) < random.integers(2, self.source + 1, (rows, 1))

    def state(self, rows=None):
        rows = np.arange(self.rows) if rows is None else np.asarray(rows)
        bias = self.bias[rows].astype("float32")
        memory = {
            "bias": ops.convert_to_tensor(bias),
            "mask": ops.convert_to_tensor(self.mask[rows]),
        }
        return {"memory": memory, "hidden": ops.zeros_like(memory["bias"])}

    def step(self, tokens, state):
        """As a decoder's: what the memory has is not copied for the hypotheses."""
        memory = state["memory"]
        embedded = ops.take(ops.convert_to_tensor(self.embedding.astype("float32")), tokens, axis=0)
        hidden = ops.matmul(state["hidden"], self.recurrent.astype("float32")) + embedded
        batch, depth = ops.shape(memory["bias"])
        hidden = ops.reshape(hidden, (batch, -1, depth)) + memory["bias"][:, None]
        hidden = ops.tanh(ops.reshape(hidden, (-1, depth)))
        attention = ops.reshape(
            ops.matmul(hidden, self.attention.astype("float32")),
            (batch, -1, self.source),
        )
        alignment = ops.softmax(ops.where(memory["mask"][:, None], attention, -1e9), axis=-1)
        logits = ops.matmul(hidden, self.output.astype("float32"))
        new = {"memory": memory, "hidden": hidden}
        return logits, new, ops.reshape(alignment, (-1, self.source))

    def uncached(self, length):
        """The same by a decoder that keeps the tokens alone and reads them all at every step."""

        def step(tokens, state):
            here = ops.equal(ops.arange(length), state["position"][:, None])
            read = ops.where(here, tokens[:, None], state["read"])
            inner = {"memory": state["memory"], "hidden": state["empty"]}
            every = []
            for position in range(length):
                logits, inner, alignment = self.step(read[:, position], inner)
                every.append((logits, alignment))
            logits, alignment = (
                ops.sum(
                    ops.where(here[..., None], ops.stack(parts, axis=1), 0.0),
                    axis=1,
                )
                for parts in zip(*every, strict=True)
            )
            new = {**state, "read": read, "position": state["position"] + 1}
            return logits, new, alignment

        return step

    def uncached_state(self, length):
        state = self.state()
        read = ops.zeros((self.rows, length), dtype="int32")
        return {
            "memory": state["memory"],
            "empty": state["hidden"],
            "read": read,
            "position": read[:, 0],
        }

    def states(self, row, target):
        """The hidden states before each token of a target, ``[length, depth]``."""
        states = [np.zeros(5)]
        for token in [BOS, *target[:-1]]:
            projected = self.embedding[token] + states[-1] @ self.recurrent
            states.append(np.tanh(projected + self.bias[row]))
        return np.array(states[1:])

    def follow(self, row, target):
        """Log-probabilities ``[length, tokens]`` and alignments before each token of a target."""
        states = self.states(row, target)
        logits = states @ self.output
        logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        attention = np.where(self.mask[row], np.exp(states @ self.attention), 0.0)
        return logp, attention / attention.sum(-1, keepdims=True)

    def score(self, row, target):
        return sum(self.follow(row, target)[0][t, token] for t, token in enumerate(target))

    def targets(self, limit):
        """Every target of at most ``limit`` tokens."""
        real = [p for p in range(self.vocabulary) if p not in (PAD, BOS, EOS)]
        for length in range(limit):
            for body in itertools.product(real, repeat=length):
                yield (*body, EOS)


def arrays(result):
    return Hypotheses(*(ops.convert_to_numpy(x) for x in result))


def targets_of(result, row):
    """The hypotheses of a row, without padding."""
    return [
        tuple(int(token) for token in ids[:length])
        for ids, length in zip(result.ids[row], result.lengths[row], strict=True)
        if length
    ]
