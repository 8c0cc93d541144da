"""Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and Translate".

A recurrent encoder and decoder with additive attention write dates in their standard form,
character by character: "Friday, 20 November 2026" becomes "2026-11-20". The query of a step is the
state *before* the step, and the context is an input of the step.

Result: all of 999 dates that are not in the training data are exact after 500 steps, which took
26 s with JAX on two idle cores.
"""

import argparse
from datetime import date

import keras
import numpy as np
from keras import layers, ops

from regard.models.attention import Attention

# The id of a character is its ASCII code. 0 is padding, and 2 begins a text, as in ASCII.
PAD, BEGIN, VOCABULARY, UNITS = 0, 2, 128, 64
SOURCE_LENGTH, TARGET_LENGTH = 28, 10
FORMATS = ("%A, %d %B %Y", "%B %d, %Y", "%d %B %Y", "%a %d %b %Y", "%d/%m/%Y", "%d.%m.%y")
FIRST, EXAMPLE = date(1950, 1, 1).toordinal(), "Friday, 20 November 2026"


def encode(texts, length):
    """Return ids [batch, length]."""
    return keras.utils.pad_sequences([list(map(ord, t)) for t in texts], length, padding="post")


def generate(rng, size, test=False):
    """Return dates as a person writes them, and their standard form: inputs, and labels."""
    days = FIRST + 20 * rng.integers(1826, size=size)  # every 20th day of 100 years: the test
    days += 0 if test else rng.integers(1, 20, size)
    dates = [date.fromordinal(int(day)) for day in days]
    sources = [each.strftime(rng.choice(FORMATS)) for each in dates]
    target = encode(map(str, dates), TARGET_LENGTH)
    return {"source": encode(sources, SOURCE_LENGTH), "target": target}, {"logits": target}


class Translator(keras.Model):
    def __init__(self):
        super().__init__()
        self.source_embedding = layers.Embedding(VOCABULARY, 32, mask_zero=True)
        self.encoder = layers.Bidirectional(layers.GRU(UNITS, return_sequences=True))
        self.first_state = layers.Dense(UNITS, activation="tanh")
        self.target_embedding = layers.Embedding(VOCABULARY, 32)
        self.attention = Attention("additive")
        self.attention.build((None, None, UNITS), (None, None, 2 * UNITS))
        self.cell = layers.GRUCell(UNITS)
        self.readout = layers.Dense(2 * UNITS)
        self.output_layer = layers.Dense(VOCABULARY)

    def call(self, inputs):
        source, target = inputs["source"], inputs.get("target")  # a target in training only
        # h_j = [→h_j; ←h_j], of both directions (§3.2). The embedding masks padding.
        h = self.encoder(self.source_embedding(source))
        prepared = self.attention.prepare(h, mask=ops.not_equal(source, PAD))  # U_a h_j (§A.1.2)
        s = self.first_state(h[:, 0, UNITS:])  # s_0 = tanh(W_s ←h_1) (§A.2.2)
        y = ops.full_like(source[:, 0], BEGIN)
        logits, alignment = [], []
        for i in range(TARGET_LENGTH):
            # e_ij = v_a · tanh(W_a s_{i-1} + U_a h_j) (§A.1.2)
            # α_ij = exp(e_ij) / Σ_k exp(e_ik),  c_i = Σ_j α_ij h_j (§3.1)
            c, alpha, _ = self.attention.attend_with_distribution(s[:, None], prepared)
            # s_i = f(s_{i-1}, y_{i-1}, c_i), where f is a gated recurrent unit (§A.2.2)
            y_and_c = ops.concatenate([self.target_embedding(y), c[:, 0]], axis=-1)
            s, _ = self.cell(y_and_c, [s])
            # t_i is the maximum of each pair of sums of s_i, y_{i-1} and c_i; p(y_i) ∝ exp(W_o t_i)
            pairs = self.readout(ops.concatenate([s, y_and_c], axis=-1))
            t = ops.max(ops.reshape(pairs, (-1, UNITS, 2)), axis=-1)
            logits.append(self.output_layer(t))
            alignment.append(alpha[:, 0])
            # The next step reads the true character in training, and the best one otherwise.
            y = ops.argmax(logits[-1], axis=-1) if target is None else target[:, i]
        return {"logits": ops.stack(logits, axis=1), "alignment": ops.stack(alignment, axis=1)}


def draw(source, output, alignment):
    """Save a heat map with a row for each character of the output."""
    from matplotlib.figure import Figure  # To draw: pip install matplotlib

    axis = Figure(figsize=(6, 3), layout="constrained").subplots()
    axis.imshow(alignment[:, : len(source)], cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(range(len(source)), source)
    axis.set_yticks(range(len(output)), output)
    axis.figure.savefig("bahdanau_dates.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500, help="training steps, at least 10")
    steps = parser.parse_args().steps
    keras.utils.set_random_seed(1)
    model = Translator()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = keras.optimizers.schedules.CosineDecay(0.005, steps)
    model.compile(keras.optimizers.Adam(rate, clipnorm=1.0), loss={"logits": loss})
    rng = np.random.default_rng(1)
    batches = (generate(rng, 64) for _ in range(steps))
    model.fit(batches, steps_per_epoch=steps // 10, epochs=10, shuffle=False, verbose=2)
    inputs, labels = generate(np.random.default_rng(2), 1000, test=True)
    inputs["source"][0] = encode([EXAMPLE], SOURCE_LENGTH)
    outputs = model.predict({"source": inputs["source"]}, verbose=0)
    output = np.argmax(outputs["logits"], axis=-1)
    exact = np.mean(np.all(output[1:] == labels["logits"][1:], axis=1))
    print(f"Exact match on dates that are not in the training data: {exact:.3f}")
    print(EXAMPLE, "→", "".join(map(chr, output[0])))
    draw(EXAMPLE, "".join(map(chr, output[0])), outputs["alignment"][0])


if __name__ == "__main__":
    main()
