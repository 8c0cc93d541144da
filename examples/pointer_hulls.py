"""Vinyals et al. 2015, "Pointer Networks": the convex hull of 5 to 10 points in the plane.

The output is a sequence of inputs: the corners, counter-clockwise from the leftmost one, then the
end. The weights of the attention are the output, and there is no context. The paper's encoder is an
LSTM. Here points attend to each other, because a set has no order.

Result: 0.96 of the hulls are exact after 3,000 steps, which took 3 min 11 s with JAX on two
idle cores.
"""

import argparse

import keras
import numpy as np
from keras import layers, ops

from regard.models.attention import MultiHeadAttention, Pointer

# An output is 0 for the end, or 1 + the index of a point.
END, PAD, LOW, HIGH, UNITS, LAYERS = 0, -1, 5, 10, 96, 3


def hull(points):
    """Return the indices of the corners, counter-clockwise from the leftmost one."""
    corners = [int(np.argmin(points[:, 0]))]
    while True:
        x, y = (points - points[corners[-1]]).T
        areas = np.outer(x, y) - np.outer(y, x)
        # On the way to the next corner i, no point is on the right.
        i = int(np.flatnonzero((areas >= 0).all(axis=1) & (x**2 + y**2 > 0))[0])
        if i == corners[0]:
            return corners
        corners.append(i)


def generate(rng, size):
    """Return points, their mask, and the outputs [batch, HIGH + 1]: inputs, and labels."""
    points, counts = rng.random((size, HIGH, 2), "float32"), rng.integers(LOW, HIGH + 1, size)
    hulls = [[*np.add(hull(row[:n]), 1), END] for row, n in zip(points, counts, strict=True)]
    target = keras.utils.pad_sequences(hulls, HIGH + 1, padding="post", value=PAD)
    mask = np.arange(HIGH) < counts[:, None]
    return {"points": points, "mask": mask, "target": target}, {"logits": target}


class PointerNetwork(keras.Model):
    def __init__(self):
        super().__init__()
        self.embedding = layers.Dense(UNITS)
        self.attention = [MultiHeadAttention(heads=8, width=UNITS) for _ in range(LAYERS)]
        self.hidden = [layers.Dense(2 * UNITS, "relu") for _ in range(LAYERS)]
        self.project = [layers.Dense(UNITS) for _ in range(LAYERS)]
        self.norms = [layers.LayerNormalization() for _ in range(2 * LAYERS)]
        self.end = self.add_weight(shape=(1, 1, UNITS), initializer="glorot_uniform")
        self.cell, self.pointer = layers.LSTMCell(UNITS), Pointer("additive")
        self.pointer.build((None, None, UNITS), (None, None, UNITS))

    def call(self, inputs):
        mask, target = inputs["mask"], inputs.get("target")  # a target in training only
        # e_j, from the layers of transformer_multi30k.py; e_0 is the end
        e = self.embedding(inputs["points"])
        for i in range(LAYERS):
            e = self.norms[2 * i](e + self.attention[i](e, mask=mask, return_weights=False))
            e = self.norms[2 * i + 1](e + self.project[i](self.hidden[i](e)))
        e = ops.concatenate([ops.broadcast_to(self.end, ops.shape(e[:, :1])), e], axis=1)
        choices = ops.pad(mask, [[0, 0], [1, 0]], constant_values=True)
        prepared = self.pointer.prepare(e, choices)  # W_1 e_j
        d, y = [ops.mean(e, axis=1), ops.zeros_like(e[:, 0])], ops.zeros_like(e[:, 0, 0], "int32")
        logits = []
        for i in range(HIGH + 1):
            # d_i = LSTM(e_C, d_{i-1}), where C is the choice before
            chosen = ops.equal(ops.arange(HIGH + 1), y[:, None])
            _, d = self.cell(ops.sum(ops.where(chosen[..., None], e, 0.0), axis=1), d)
            # u_j = v · tanh(W_1 e_j + W_2 d_i),  p(C_i) = softmax(u) (§2.3). A choice is final.
            u = self.pointer.logits(d[0][:, None], prepared, choices[:, None])[:, 0]
            logits.append(u)
            # The next step reads the true point in training, and the best one otherwise.
            y = ops.cast(ops.argmax(u, axis=-1), "int32") if target is None else target[:, i]
            point = ops.where(ops.equal(y, END), PAD, y)  # only the end can be chosen again
            choices = ops.logical_and(choices, ops.not_equal(ops.arange(HIGH + 1), point[:, None]))
        logits = ops.stack(logits, axis=1)
        return {"logits": logits, "alignment": ops.softmax(logits, axis=-1)}


def draw(points, corners, alignment):
    """Save the hull, and a heat map with a row for each step."""
    from matplotlib.figure import Figure  # To draw: pip install matplotlib

    plane, axis = Figure(figsize=(6, 3), layout="constrained").subplots(1, 2)
    plane.plot(*points[[i - 1 for i in (*corners, corners[0])]].T)
    for i, point in enumerate(points, start=1):
        plane.annotate(i, point)
    axis.imshow(alignment[: len(corners) + 1, : len(points) + 1], cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(range(len(points) + 1), ["end", *range(1, len(points) + 1)])
    axis.set_yticks(range(len(corners) + 1), [*corners, "end"])
    axis.figure.savefig("pointer_hulls.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000, help="training steps, at least 10")
    steps = parser.parse_args().steps
    keras.utils.set_random_seed(1)
    model = PointerNetwork()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=PAD)
    rate = keras.optimizers.schedules.CosineDecay(0.0, steps, 0.0, "rate", 0.002, steps // 10)
    model.compile(keras.optimizers.Adam(rate, clipnorm=1.0), loss={"logits": loss})
    rng = np.random.default_rng(1)
    batches = (generate(rng, 128) for _ in range(steps))
    model.fit(batches, steps_per_epoch=steps // 10, epochs=10, shuffle=False, verbose=2)
    inputs, labels = generate(np.random.default_rng(2), 2000)
    outputs = model.predict({name: inputs[name] for name in ("points", "mask")}, verbose=0)
    output, target = np.argmax(outputs["logits"], axis=-1), labels["logits"]
    exact = np.mean(np.all((output == target) | (target == PAD), axis=1))
    print(f"Exact match of convex hulls: {exact:.3f}")
    row = np.argmax(inputs["mask"].sum(axis=1))  # with ten points
    draw(inputs["points"][row], output[row, : np.argmin(output[row])], outputs["alignment"][row])


if __name__ == "__main__":
    main()
