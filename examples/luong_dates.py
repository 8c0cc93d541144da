"""Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation".

The dates of bahdanau_dates.py with the global attention and the input feeding of Luong et al. The
query of a step is the state *after* the step, and the attentional state is an input of the next.

Result: all of 999 dates that are not in the training data are exact after 2,000 steps, which took
39 s with JAX on two idle cores. The last state of the encoder knows the year, so the decoder
attends to the month and the day only.
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
        self.encoder = layers.LSTM(UNITS, return_sequences=True, return_state=True)
        self.target_embedding = layers.Embedding(VOCABULARY, 32)
        self.cell = layers.LSTMCell(UNITS)
        self.attention = Attention("general")
        self.attention.build((None, None, UNITS), (None, None, UNITS))
        self.combine = layers.Dense(UNITS, activation="tanh", use_bias=False)
        self.output_layer = layers.Dense(VOCABULARY, use_bias=False)

    def call(self, inputs):
        source, target = inputs["source"], inputs.get("target")  # a target in training only
        # h̄_s: what the encoder knows after character s. Its last state is the decoder's first one.
        h_bar, *state = self.encoder(self.source_embedding(source))
        prepared = self.attention.prepare(h_bar, mask=ops.not_equal(source, PAD))  # W_a h̄_s
        y, h_tilde = ops.full_like(source[:, 0], BEGIN), ops.zeros_like(state[0])
        logits, alignment = [], []
        for t in range(TARGET_LENGTH):
            # h_t = LSTM([y_{t-1}; h̃_{t-1}], h_{t-1}): with input feeding (§3.3)
            embedded = ops.concatenate([self.target_embedding(y), h_tilde], axis=-1)
            h, state = self.cell(embedded, state)
            # score(h_t, h̄_s) = h_t · W_a h̄_s, "general" (§3.1). Regard also divides by √d.
            # a_t(s) = exp(score(h_t, h̄_s)) / Σ_s' exp(score(h_t, h̄_s')) (eq. 7)
            # c_t = Σ_s a_t(s) h̄_s
            c, a, _ = self.attention.attend_with_distribution(h[:, None], prepared)
            # h̃_t = tanh(W_c [c_t; h_t]) (eq. 5),  p(y_t) = softmax(W_s h̃_t)
            h_tilde = self.combine(ops.concatenate([c[:, 0], h], axis=-1))
            logits.append(self.output_layer(h_tilde))
            alignment.append(a[:, 0])
            # The next step reads the true character in training, and the best one otherwise.
            y = ops.argmax(logits[-1], axis=-1) if target is None else target[:, t]
        return {"logits": ops.stack(logits, axis=1), "alignment": ops.stack(alignment, axis=1)}


def draw(source, output, alignment):
    """Save a heat map with a row for each character of the output."""
    from matplotlib.figure import Figure  # To draw: pip install matplotlib

    axis = Figure(figsize=(6, 3), layout="constrained").subplots()
    axis.imshow(alignment[:, : len(source)], cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(range(len(source)), source)
    axis.set_yticks(range(len(output)), output)
    axis.figure.savefig("luong_dates.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000, help="training steps, at least 10")
    steps = parser.parse_args().steps
    keras.utils.set_random_seed(1)
    model = Translator()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = keras.optimizers.schedules.CosineDecay(0.01, steps)
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
