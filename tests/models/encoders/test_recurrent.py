import keras
import numpy as np
import pytest

from regard.models.encoders import ENCODERS, RecurrentEncoder

IDS = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")
VARIANTS = [
    {},
    {"layers": 2, "bidirectional": False},
    {"layers": 2, "cell": "gru", "reverse": True},
    {"layers": 2, "bidirectional": False, "residual": True, "embedding": 4, "reverse": True},
    {"layers": 3, "residual": True, "dropout_type": "variational"},
]
every_variant = pytest.mark.parametrize("settings", VARIANTS, ids=str)


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


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
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
    np.testing.assert_allclose(memory["values"] * real, outputs * real, atol=1e-5)
    assert memory["values"].shape[-1] == encoder.depth


@every_variant
def test_a_padded_row_gives_what_it_gives_alone(settings):
    encoder = make(**settings)
    beam_width, alone = encoder(IDS), encoder(IDS[1:, :2])
    np.testing.assert_allclose(beam_width["values"][1:, :2], alone["values"], atol=1e-6)
    assert (keras.ops.convert_to_numpy(beam_width["values"])[1, 2:] == 0).all()
    for ours, theirs in zip(beam_width["final_states"], alone["final_states"], strict=True):
        np.testing.assert_allclose(ours[1:], theirs, atol=1e-6)
        assert ours.shape[-1] == encoder.final_depth


@every_variant
def test_points_are_read_too(settings):
    keras.utils.set_random_seed(8)
    encoder = RecurrentEncoder(None, **{"embedding": 3, "units": 4, **settings})
    encoder.build()
    points = np.random.default_rng(2).uniform(-1, 1, (2, 4, 3)).astype("float32")
    points[..., 2] = 1
    points[1, 2:] = 0
    beam_width, alone = encoder(points), encoder(points[1:, :2])
    np.testing.assert_array_equal(beam_width["mask"], points[..., 2] == 1)
    np.testing.assert_allclose(beam_width["values"][1:, :2], alone["values"], atol=1e-6)
    assert (keras.ops.convert_to_numpy(beam_width["values"])[1, 2:] == 0).all()
    for ours, theirs in zip(beam_width["final_states"], alone["final_states"], strict=True):
        np.testing.assert_allclose(ours[1:], theirs, atol=1e-6)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(encoder))
    again.set_weights(encoder.get_weights())
    np.testing.assert_array_equal(again(points)["values"], beam_width["values"])


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_reversed_is_reading_the_reversed_row(cell):
    settings = {"layers": 2, "bidirectional": False, "cell": cell}
    reverse, plain = make(**settings, reverse=True), make(**settings)
    plain.set_weights(reverse.get_weights())
    memory = reverse(IDS)
    for row in IDS:
        real = row[row != 0]
        expected = plain(real[::-1][None])
        result = reverse(row[None])
        np.testing.assert_allclose(
            result["values"][0, : len(real)], expected["values"][0, ::-1], atol=1e-6
        )
        for ours, theirs in zip(result["final_states"], expected["final_states"], strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert not np.allclose(memory["values"], plain(IDS)["values"])


def test_the_final_state_is_the_last_one_read_and_the_top_layer_comes_last():
    encoder = make(layers=2)
    memory = encoder(IDS)
    top = np.asarray(memory["final_states"][0])[:, encoder.depth :]
    values = np.asarray(memory["values"])
    np.testing.assert_allclose(top[:, :4], [values[0, 3, :4], values[1, 1, :4]], atol=1e-6)
    np.testing.assert_allclose(top[:, 4:], values[:, 0, 4:], atol=1e-6)


@pytest.mark.parametrize(("embedding", "added"), [(3, [False, True]), (8, [True, True])])
def test_residual_adds_the_input_where_it_fits(embedding, added):
    encoder = make(layers=2, residual=True, embedding=embedding)
    inputs = np.asarray(encoder.embedding(IDS)) * (IDS != 0)[..., None]
    for cell, fits in zip(encoder.cells, added, strict=True):
        outputs, _ = encoder._run(cell, keras.ops.convert_to_tensor(inputs), IDS != 0, False)
        outputs = np.asarray(outputs) * (IDS != 0)[..., None]
        inputs = outputs + inputs if fits else outputs
    np.testing.assert_allclose(encoder(IDS)["values"], inputs, atol=1e-6)


@pytest.mark.parametrize("kind", ["plain", "variational"])
def test_dropout_only_in_training(kind):
    encoder = make(dropout=0.5, dropout_type=kind)
    still = encoder(IDS)["values"]
    np.testing.assert_array_equal(still, encoder(IDS)["values"])
    assert not np.allclose(still, encoder(IDS, training=True)["values"])


@pytest.mark.parametrize("kind", ["plain", "variational"])
def test_what_is_dropped_of_the_memory(kind):
    encoder = make(dropout=0.5, dropout_type=kind)
    ids = np.full((30, 6), 5, "int32")
    dropped = np.asarray(encoder(ids, training=True)["values"]) == 0
    assert 0.3 < dropped.mean() < 0.7
    assert (dropped == dropped[:, :1]).all() == (kind == "variational")


def test_variational_dropout_reaches_the_recurrence_and_plain_does_not():
    """With kernels of the input at zero, only the state's own dropout can make a difference."""
    for kind, differs in [("plain", False), ("variational", True)]:
        encoder = make(dropout=0.5, dropout_type=kind, bidirectional=False)
        cell = encoder.cells[0]
        cell.kernel.assign(cell.kernel * 0)
        cell.bias.assign(cell.bias * 0 + 1)
        result = encoder(IDS, training=True)["final_states"][0]
        assert np.allclose(result, encoder(IDS)["final_states"][0]) != differs


@every_variant
def test_gradients_are_finite_and_reach_every_weight(settings):
    import tensorflow as tf

    encoder = make(**settings, dropout=0.2)
    ids = np.concatenate([IDS, np.zeros((1, 4), "int32")])  # the last row has no source at all
    with tf.GradientTape() as tape:
        memory = encoder(ids, training=True)
        loss = tf.reduce_sum(memory["values"] ** 2) + tf.reduce_sum(memory["final_states"][0])
    weights = [weight.value for weight in encoder.trainable_weights]
    gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]
    assert all(np.isfinite(g).all() for g in gradients)
    assert all(np.any(g != 0) for g in gradients)


@every_variant
def test_low_precision_is_close(settings):
    exact, rough = make(**settings), make(**settings, dtype="mixed_bfloat16")
    rough.set_weights(exact.get_weights())
    result, expected = rough(IDS), exact(IDS)
    assert result["values"].dtype == result["final_states"][0].dtype == "bfloat16"
    np.testing.assert_allclose(
        keras.ops.cast(result["values"], "float32"), expected["values"], atol=0.05
    )


@every_variant
def test_config_round_trip(settings):
    encoder = make(**settings, dropout=0.1)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(encoder))
    assert again.get_config() == encoder.get_config()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cell": "grru"}, "Unknown cell 'grru'. Did you mean gru"),
        ({"dropout_type": "none"}, "dropout_type 'none'"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        make(**settings)


def test_every_encoder_is_registered():
    for name, encoder in ENCODERS.items():
        assert keras.saving.get_registered_name(encoder) == f"regard>{encoder.__name__}", name
