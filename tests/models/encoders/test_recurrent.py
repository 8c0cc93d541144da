import keras
import numpy as np
import pytest

from regard.models.encoders import RecurrentEncoder
from tests.models.encoders import reference
from tests.tolerances import assert_close

IDS = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")


def make(**settings):
    keras.utils.set_random_seed(8)
    encoder = RecurrentEncoder(10, **{"embedding": 3, "units": 4, **settings})
    encoder.build()
    return encoder


def keras_layer(cell, weights):
    """Keras's layer of one direction with our weights."""
    if cell.state_names == ("h", "c"):
        layer = keras.layers.LSTM(4, return_sequences=True)
        kernel, recurrent, bias = weights
        theirs = [kernel, recurrent, bias[0]]
    else:
        layer = keras.layers.GRU(4, return_sequences=True, reset_after=True)
        kernel, recurrent, bias, reset = weights
        theirs = [kernel, recurrent, np.stack([bias[0], np.pad(reset[0], (8, 0))])]
    layer.build((None, None, kernel.shape[0]))
    layer.set_weights(theirs)
    return layer


@pytest.mark.parametrize(
    ("cell", "layers", "bidirectional"),
    [("lstm", 1, True), ("lstm", 2, False), ("gru", 1, False), ("gru", 2, True)],
)
def test_coincides_with_keras(cell, layers, bidirectional):
    encoder = make(layers=layers, bidirectional=bidirectional, cell=cell)
    for layer in encoder.cells:  # biases of zero would hide a wrong order
        layer.bias.assign(layer.bias + np.linspace(-1, 1, layer.bias.shape[-1]))
    memory = encoder(IDS)
    outputs = encoder.embedding(IDS)
    mask = keras.ops.convert_to_tensor(IDS != 0)
    for layer in encoder.cells:
        directions = []
        for d in range(encoder.directions):
            theirs = keras_layer(layer, [w[d] for w in layer.get_weights()])
            theirs.go_backwards = d == 1
            result = theirs(outputs, mask=mask)
            directions.append(keras.ops.flip(result, 1) if d else result)
        outputs = keras.ops.concatenate(directions, -1)
    real = (IDS != 0)[..., None]
    assert_close(memory["values"] * real, outputs * real)
    assert memory["values"].shape[-1] == encoder.depth


def test_the_annotations_equal_the_paper():
    encoder = make(cell="gru")
    (cell,) = encoder.cells
    for weight in cell.weights:  # biases of zero would hide a wrong order
        weight.assign(weight + np.linspace(-1, 1, weight.shape[-1]))
    weights = [np.asarray(w, "float64") for w in cell.get_weights()]

    def step(direction):
        kernel, recurrent, bias, reset = (w[direction] for w in weights)
        matrices = (kernel.T, recurrent.T, bias[0], reset[0])
        return lambda x, h: reference.gru_step(x, h, *matrices)

    values, embedded = (np.asarray(x) for x in (encoder(IDS)["values"], encoder.embedding(IDS)))
    for row, length in enumerate((4, 2)):
        words = embedded[row, :length].astype("float64")
        expected = reference.annotations(words, step(0), step(1), np.zeros(4))
        assert_close(values[row, :length], expected)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_reversed_is_reading_the_reversed_row(cell):
    settings = {"layers": 2, "bidirectional": False, "cell": cell}
    reverse, plain = make(**settings, reverse=True), make(**settings)
    plain.set_weights(reverse.get_weights())
    for row in IDS:
        real = row[row != 0]
        expected = plain(real[::-1][None])
        result = reverse(row[None])
        assert_close(result["values"][0, : len(real)], expected["values"][0, ::-1])
        assert_close(result["final_states"], expected["final_states"])
    assert not np.allclose(reverse(IDS)["values"], plain(IDS)["values"])


def test_the_final_state_is_the_last_one_read_and_the_top_layer_comes_last():
    encoder = make(layers=2)
    memory = encoder(IDS)
    top = np.asarray(memory["final_states"][0])[:, encoder.depth :]
    values = np.asarray(memory["values"])
    assert_close(top[:, :4], [values[0, 3, :4], values[1, 1, :4]])
    assert_close(top[:, 4:], values[:, 0, 4:])


@pytest.mark.parametrize(("embedding", "added"), [(3, [False, True]), (8, [True, True])])
def test_residual_adds_the_input_where_it_fits(embedding, added):
    encoder = make(layers=2, residual=True, embedding=embedding)
    inputs = np.asarray(encoder.embedding(IDS)) * (IDS != 0)[..., None]
    for cell, fits in zip(encoder.cells, added, strict=True):
        outputs, _ = encoder._run(cell, keras.ops.convert_to_tensor(inputs), IDS != 0, False)
        outputs = np.asarray(outputs) * (IDS != 0)[..., None]
        inputs = outputs + inputs if fits else outputs
    assert_close(encoder(IDS)["values"], inputs)


def test_what_is_dropped_of_the_memory():
    encoder = make(dropout=0.5)
    ids = np.full((30, 6), 5, "int32")
    dropped = np.asarray(encoder(ids, training=True)["values"]) == 0
    assert 0.3 < dropped.mean() < 0.7
    assert not (dropped == dropped[:, :1]).all()
