import keras
import numpy as np
import pytest

from regard.models.layers.cells import GRUCell, LSTMCell, RNNCell
from regard.models.layers.loops import batch_first, scan_steps
from tests.tolerances import assert_close

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
    output, result = cell(x, (h, c), extra)
    np.testing.assert_array_equal(output, result[0])
    for ours, expected in zip(result, reference(x, h, c, *weights, extra=extra), strict=True):
        assert_close(ours, expected)


def test_the_forget_gate_starts_open():
    cell = LSTMCell(2)
    cell.build((None, 3))
    np.testing.assert_array_equal(cell.bias, [0, 0, 1, 1, 0, 0, 0, 0])


def run(cell, x, **masks):
    """The outputs ``[batch, steps, units]`` of a cell over a sequence, from a state of zeros."""

    def step(state, now):
        new = cell.advance(now[0], state, **masks)
        return new, new

    steps = cell.project(np.transpose(x, (1, 0, 2)))
    _, states = scan_steps(step, cell.start(len(x)), [steps])
    return batch_first(states[0])


def test_gru_coincides_with_keras():
    theirs = keras.layers.GRU(4, return_sequences=True, reset_after=True)
    x = RANDOM.normal(size=(2, 6, 3)).astype("float32")
    theirs.build(x.shape)
    kernel, recurrent, biases = (RANDOM.normal(size=w.shape) for w in theirs.get_weights())
    theirs.set_weights([kernel, recurrent, biases])
    ours = GRUCell(4)
    ours.build((None, 3))
    # Keras has a bias of the input and one of the state for every gate.
    bias = np.concatenate([biases.sum(0)[:8], biases[0, 8:]])
    ours.set_weights([kernel, recurrent, bias, biases[1, 8:]])
    assert_close(run(ours, x), theirs(x))


def test_the_simple_cell_coincides_with_keras_and_elman():
    theirs = keras.layers.SimpleRNN(4, return_sequences=True)
    x = RANDOM.normal(size=(2, 6, 3)).astype("float32")
    theirs.build(x.shape)
    weights = [RANDOM.normal(size=w.shape) for w in theirs.get_weights()]
    theirs.set_weights(weights)
    ours = RNNCell(4)
    ours.build((None, 3))
    ours.set_weights(weights)
    assert_close(run(ours, x), theirs(x))
    kernel, recurrent, bias = weights
    h = np.zeros((2, 4))
    for step in range(6):
        h = np.tanh(x[:, step] @ kernel + h @ recurrent + bias)
    assert_close(run(ours, x)[:, -1], h)


def test_gru_adds_the_extra_input_to_the_gates_and_never_resets_it():
    cell = GRUCell(4, extra=2)
    cell.build((None, 3))
    x, h, extra = (RANDOM.normal(size=(2, n)).astype("float32") for n in (3, 4, 2))
    whole = GRUCell(4)  # the same with concatenated inputs
    whole.build((None, 5))
    kernel, recurrent, extra_kernel, *biases = cell.get_weights()
    whole.set_weights([np.concatenate([kernel, extra_kernel]), recurrent, *biases])
    expected, _ = whole(np.concatenate([x, extra], -1), (h,))
    assert_close(cell(x, (h,), extra)[0], expected)


@pytest.mark.parametrize("make", [LSTMCell, GRUCell, RNNCell])
def test_directions_are_cells_of_their_own(make):
    both = make(4, directions=2)
    both.build((None, 3))
    x = RANDOM.normal(size=(2, 5, 3)).astype("float32")  # [direction, batch, depth]
    h, *_ = both(x, both.start(5))
    for direction in range(2):
        one = make(4)
        one.build((None, 3))
        for weight, pair in zip(one.weights, both.get_weights(), strict=True):
            weight.assign(np.reshape(pair[direction], weight.shape))
        alone, *_ = one(x[direction], one.start(5))
        assert_close(h[direction], alone)
    first, second = both.get_weights()[1]
    assert not np.allclose(first, second)


@pytest.mark.parametrize("directions", [1, 2])
def test_a_projection_of_all_steps_equals_numpy(directions):
    """In sizes of real models: TensorFlow's kernel for one direction is wrong only in these."""
    cell = LSTMCell(64, directions=directions)
    cell.build((None, 128))
    x = RANDOM.normal(size=(23, directions, 32, 128)).astype("float32")
    kernel, _, bias = (np.asarray(weight, "float64") for weight in cell.get_weights())
    assert_close(cell.project(x), x @ kernel + bias, roundings=1000)


@pytest.mark.parametrize("make", [LSTMCell, GRUCell, RNNCell])
def test_every_gate_starts_orthogonal(make):
    cell = make(6)
    cell.build((None, 3))
    for gate in np.split(np.asarray(cell.recurrent_kernel), cell.blocks, axis=-1):
        assert_close(gate.T @ gate, np.eye(6))


@pytest.mark.parametrize("kind", [LSTMCell, GRUCell])
def test_cells_work_in_keras_rnn(kind, tmp_path):
    """One layer and two, with a mask, a state and a saved model."""
    x = RANDOM.normal(size=(2, 6, 3)).astype("float32")
    cell = kind(4)
    output, *state = keras.layers.RNN(cell, return_sequences=True, return_state=True)(x)
    assert_close(output, run(cell, x))
    assert_close(state[0], output[:, -1])
    assert len(state) == len(cell.state_names)
    ids = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(5, 3, mask_zero=True)(ids)
    model = keras.Model(ids, keras.layers.RNN([kind(4), kind(2)])(embedded))
    padded, alone = model(np.array([[1, 2, 0, 0]])), model(np.array([[1, 2]]))
    assert_close(padded, alone)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_close(loaded(np.array([[1, 2]])), alone)


def test_two_directions_do_not_fit_into_keras_rnn():
    with pytest.raises(ValueError, match="without `directions`"):
        keras.layers.RNN(LSTMCell(4, directions=2))
