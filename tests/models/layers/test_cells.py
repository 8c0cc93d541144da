import keras
import numpy as np
import pytest

from models.layers.cells import LSTMCell
from models.layers.loops import scan_steps

RANDOM = np.random.default_rng(7)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference(x, h, c, kernel, recurrent, bias, extra=None):
    """Hochreiter and Schmidhuber's equations in float64."""
    hidden = h if extra is None else np.concatenate([h, extra], -1)
    i, f, g, o = np.split(x @ kernel + hidden @ recurrent + bias, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def test_equals_the_equations():
    cell = LSTMCell(4, extra=3)
    cell.build((None, 5))
    x, h, c, extra = (RANDOM.normal(size=(2, n)).astype("float32") for n in (5, 4, 4, 3))
    weights = [np.asarray(w, "float64") for w in cell.get_weights()]
    found = cell(x, (h, c), extra)
    for ours, expected in zip(found, reference(x, h, c, *weights, extra=extra), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_the_forget_gate_starts_open():
    cell = LSTMCell(2)
    cell.build((None, 3))
    np.testing.assert_array_equal(cell.bias, [0, 0, 1, 1, 0, 0, 0, 0])


def test_coincides_with_keras():
    theirs = keras.layers.LSTM(4, return_sequences=True)
    x = RANDOM.normal(size=(2, 6, 3)).astype("float32")
    expected = theirs(x)
    ours = LSTMCell(4)
    ours.build((None, 3))
    ours.set_weights(theirs.get_weights())
    steps = np.transpose(x, (1, 0, 2))
    state = tuple(np.zeros((2, 4), "float32") for _ in range(2))

    def step(state, now):
        new = ours.advance(now[0], state)
        return new, new

    _, (h, _) = scan_steps(step, state, [ours.project(steps)])
    np.testing.assert_allclose(np.transpose(h, (1, 0, 2)), expected, atol=1e-5)


def test_directions_are_cells_of_their_own():
    both = LSTMCell(4, directions=2)
    both.build((None, 3))
    x = RANDOM.normal(size=(2, 5, 3)).astype("float32")  # [direction, batch, depth]
    h, _ = both(x, both.start(5))
    for direction in range(2):
        one = LSTMCell(4)
        one.build((None, 3))
        one.set_weights(
            [
                np.reshape(w[direction], s.shape)
                for w, s in zip(both.get_weights(), one.weights, strict=True)
            ]
        )
        alone, _ = one(x[direction], one.start(5))
        np.testing.assert_allclose(h[direction], alone, atol=1e-6)
    first, second = both.get_weights()[1]
    assert not np.allclose(first, second)


def test_every_gate_starts_orthogonal():
    cell = LSTMCell(6)
    cell.build((None, 3))
    for gate in np.split(np.asarray(cell.recurrent_kernel), 4, axis=-1):
        np.testing.assert_allclose(gate.T @ gate, np.eye(6), atol=1e-5)


@pytest.mark.parametrize("count", [1, 3])
def test_scan_gives_each_input_its_own_slice(count):
    inputs = [RANDOM.normal(size=(4, 2, 1 + n)).astype("float32") for n in range(count)]

    def step(total, now):
        assert len(now) == count
        total = total + sum(keras.ops.sum(x, axis=-1) for x in now)
        return total, total

    last, all_totals = scan_steps(step, np.zeros(2, "float32"), inputs)
    expected = np.cumsum(sum(x.sum(-1) for x in inputs), axis=0)
    np.testing.assert_allclose(all_totals, expected, atol=1e-5)
    np.testing.assert_allclose(last, expected[-1], atol=1e-5)
