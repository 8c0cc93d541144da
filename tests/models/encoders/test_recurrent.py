import keras
import numpy as np
import pytest

from models.encoders import RecurrentEncoder

IDS = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")


def make(**settings):
    encoder = RecurrentEncoder(10, embedding=3, units=4, **settings)
    encoder.build()
    return encoder


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_coincides_with_keras(layers, bidirectional):
    encoder = make(layers=layers, bidirectional=bidirectional)
    memory = encoder(IDS)
    outputs = keras.ops.convert_to_tensor(np.asarray(encoder.embedding.table)[IDS])
    mask = IDS != 0
    for cell in encoder.cells:
        theirs = keras.layers.LSTM(4, return_sequences=True)
        if bidirectional:
            theirs = keras.layers.Bidirectional(theirs)
        theirs.build(outputs.shape)
        weights = cell.get_weights()
        theirs.set_weights(
            [
                np.reshape(w[d], (-1, 16)) if w[d].shape[0] > 1 else w[d][0]
                for d in range(encoder.directions)
                for w in weights
            ]
        )
        outputs = theirs(outputs, mask=keras.ops.convert_to_tensor(mask))
    real = mask[..., None]
    np.testing.assert_allclose(memory["values"] * real, outputs * real, atol=1e-5)
    assert memory["values"].shape[-1] == encoder.depth


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_padded_row_gives_what_it_gives_alone(bidirectional):
    encoder = make(layers=2, bidirectional=bidirectional)
    together, alone = encoder(IDS), encoder(IDS[1:, :2])
    np.testing.assert_allclose(together["values"][1:, :2], alone["values"], atol=1e-6)
    assert (keras.ops.convert_to_numpy(together["values"])[1, 2:] == 0).all()
    for ours, theirs in zip(together["final_states"], alone["final_states"], strict=True):
        np.testing.assert_allclose(ours[1:], theirs, atol=1e-6)
        assert ours.shape[-1] == encoder.final_depth


def test_dropout_only_in_training():
    encoder = make(dropout=0.5)
    still = encoder(IDS)["values"]
    np.testing.assert_array_equal(still, encoder(IDS)["values"])
    assert not np.allclose(still, encoder(IDS, training=True)["values"])


def test_config_round_trip():
    encoder = make(layers=2, bidirectional=False, dropout=0.1)
    assert RecurrentEncoder.from_config(encoder.get_config()).get_config() == encoder.get_config()
