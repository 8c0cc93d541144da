"""Xu et al. 2015, "Show, Attend and Tell": captions of images, with soft attention.

An image of two shapes becomes "a red circle left of a blue cross"; in training the shape that is
first in SHAPES comes first. A convolutional network encodes a grid, and the decoder attends to its
cells before each word. Result: 0.95 of captions exact after 900 steps, 95 s on two idle cores.
"""

import argparse

import keras
import numpy as np
from keras import layers, ops

from regard.models.attention import Attention

SIDE, CELLS, LENGTH, UNITS, PAD, BEGIN, END = 64, 64, 9, 128, 0, 1, 2
COLOURS = {"red": (9, 2, 2), "green": (2, 7, 2), "blue": (2, 3, 8), "yellow": (9, 8, 2)}
FORMS = ("circle", "square", "triangle", "cross")
RELATIONS = ("left of", "right of", "above", "below")
SHAPES = [f"{colour} {form}" for colour in COLOURS for form in FORMS]
WORDS = ("", "<begin>", "<end>", "a", "left", "right", "of", "above", "below", *COLOURS, *FORMS)


def caption(first, relation, second):
    words = f"a {SHAPES[first]} {RELATIONS[relation]} a {SHAPES[second]} <end>".split()
    return [*map(WORDS.index, words), *[PAD] * (LENGTH - len(words))]


def generate(rng, size, test=False):
    """Return images [batch, SIDE, SIDE, 3], and their two true captions [batch, 2, LENGTH]."""
    images, captions = rng.normal(0.9, 0.02, (size, SIDE, SIDE, 3)).astype("float32"), []
    while len(captions) < size:
        (first, second), centres = sorted(rng.choice(16, 2, False)), rng.integers(12, 52, (2, 2))
        (across, down), distance = centres[0] - centres[1], abs(centres[0] - centres[1])
        if ((first + second) % 8 == 0) != test or distance.max() < max(24, 1.5 * distance.min()):
            continue  # a pair of the other split, or shapes without a clear relation
        for shape, (column, row) in zip((first, second), centres, strict=True):
            y, x = np.mgrid[-row : SIDE - row, -column : SIDE - column]
            radius, (low, high) = rng.integers(7, 12), np.sort([abs(x), abs(y)], axis=0)
            circle, square = x**2 + y**2 <= radius**2, high <= radius
            triangle, cross = square & (2 * abs(x) <= y + radius), square & (low <= radius // 3)
            mask = (circle, square, triangle, cross)[shape % 4]
            images[len(captions)][mask] += np.divide([*COLOURS.values()][shape // 4], 10) - 0.9
        relation = int(across > 0) if abs(across) > abs(down) else 2 + int(down > 0)
        captions.append([caption(first, relation, second), caption(second, relation ^ 1, first)])
    return images, np.array(captions, "int32")


class Captioner(keras.Model):
    def __init__(self):
        super().__init__()
        self.convolutions = [layers.Conv2D(n, 3, 2, "same") for n in (16, 32, 64)]
        self.annotate = layers.Dense(UNITS)
        self.positions = self.add_weight(shape=(CELLS, UNITS), initializer="glorot_uniform")
        self.first_h, self.first_c = layers.Dense(UNITS, "tanh"), layers.Dense(UNITS, "tanh")
        self.attention = Attention("additive")
        self.attention.build((None, None, UNITS), (None, None, UNITS))
        self.embedding, self.cell = layers.Embedding(len(WORDS), 32), layers.LSTMCell(UNITS)
        self.hidden, self.output_layer = layers.Dense(UNITS), layers.Dense(len(WORDS))

    def call(self, inputs):
        features, target = inputs["image"], inputs.get("target")  # a target in training only
        for convolution in self.convolutions:
            features = ops.relu(convolution(features))
        # a_i, a vector for each cell (§3.1.1), which knows where the cell is
        a = self.annotate(ops.reshape(features, (-1, CELLS, 64))) + self.positions
        prepared, mean = self.attention.prepare(a), ops.mean(a, axis=1)
        state = [self.first_h(mean), self.first_c(mean)]  # h_0 and c_0, of the mean of a_i (§3.1.2)
        y = ops.full_like(mean[:, 0], BEGIN, dtype="int32")
        logits, alignment = [], []
        for t in range(LENGTH):
            # e_ti = f_att(a_i, h_{t-1}),  α_t = softmax(e_t),  ẑ_t = Σ_i α_ti a_i
            z, alpha, _ = self.attention.attend_with_distribution(state[0][:, None], prepared)
            # h_t = LSTM([E y_{t-1}; ẑ_t], h_{t-1})
            y_and_z = ops.concatenate([self.embedding(y), z[:, 0]], axis=-1)
            h, state = self.cell(y_and_z, state)
            # p(y_t) ∝ exp(L_o(E y_{t-1} + L_h h_t + L_z ẑ_t)). Here the first three are one matrix.
            hidden = self.hidden(ops.concatenate([y_and_z, h], axis=-1))
            logits.append(self.output_layer(hidden))
            alignment.append(alpha[:, 0])
            # The next step reads the true word in training, and the best one otherwise.
            y = ops.argmax(logits[-1], axis=-1) if target is None else target[:, t]
        return {"logits": ops.stack(logits, axis=1), "alignment": ops.stack(alignment, axis=1)}


def draw(image, words, alignment):
    """Save a heat map for each word."""
    from matplotlib.figure import Figure  # To draw: pip install matplotlib

    axes = Figure(figsize=(6, 3), layout="constrained").subplots(2, 4).flat
    for axis, word, weights in zip(axes, words, alignment, strict=False):
        axis.imshow(image, extent=(0, 8, 8, 0))
        axis.imshow(weights.reshape(8, 8), cmap="Greys_r", alpha=0.7, extent=(0, 8, 8, 0))
        axis.set(title=word, xticks=[], yticks=[])
    axis.figure.savefig("captioning_scenes.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=900, help="training steps, at least 10")
    steps, rng = parser.parse_args().steps, np.random.default_rng(1)
    keras.utils.set_random_seed(1)
    model = Captioner()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=PAD)
    rate = keras.optimizers.schedules.CosineDecay(0.003, steps)
    model.compile(keras.optimizers.Adam(rate, clipnorm=1.0), loss={"logits": loss})
    batches = (generate(rng, 64) for _ in range(steps))
    data = (({"image": x, "target": y[:, 0]}, {"logits": y[:, 0]}) for x, y in batches)
    model.fit(data, steps_per_epoch=steps // 10, epochs=10, shuffle=False, verbose=2)
    images, captions = generate(np.random.default_rng(2), 500, test=True)
    outputs = model.predict({"image": images}, verbose=0)
    output = np.argmax(outputs["logits"], axis=-1)[:, None]
    exact = np.mean(np.any(np.all((output == captions) | (captions == PAD), axis=2), axis=1))
    print(f"Exact match on pairs of shapes that are not in the training data: {exact:.3f}")
    row = np.argmax(captions[:, 0, -1])  # with eight words
    draw(images[row], [WORDS[i] for i in output[row, 0]], outputs["alignment"][row])


if __name__ == "__main__":
    main()
