import keras
import numpy as np
import pytest

from regard.models.decoders import LuongDecoder
from regard.models.encoders import (
    EncoderStack,
    RecurrentEncoder,
    TextConvolutionEncoder,
    TransformerEncoder,
)
from regard.models.seq2seq import Seq2Seq
from tests.models.tensors import fill, round_trip
from tests.tolerances import assert_close

IDS = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")
CONVOLUTIONAL = {"type": "convolutional", "units": 5, "layers": 1}
RECURRENT = {"type": "recurrent", "units": 4, "cell": "rnn", "layers": 2}
TRANSFORMER = {"type": "transformer", "layers": 2, "heads": 2, "feed_forward": 6}
LIST = [CONVOLUTIONAL, RECURRENT, TRANSFORMER]


def stack(encoders, **settings):
    encoder = EncoderStack(10, encoders, embedding=3, **settings)
    encoder.build()
    return fill(encoder, np.random.default_rng(3), 0.3)


def without_type(options):
    return {name: value for name, value in options.items() if name != "type"}


def test_each_encoder_reads_the_outputs_of_the_one_before():
    encoder = stack(LIST)
    parts = [
        TextConvolutionEncoder(10, embedding=3, **without_type(CONVOLUTIONAL)),
        RecurrentEncoder(0, embedding=5, **without_type(RECURRENT)),
        TransformerEncoder(0, embedding=8, **without_type(TRANSFORMER)),
    ]
    memory, finals = IDS, None
    for part, own in zip(parts, encoder.encoders, strict=True):
        part.build()
        part.set_weights(own.get_weights())
        memory = part(memory)
        finals = memory.get("final_states", finals)
    result = encoder(IDS)
    np.testing.assert_array_equal(result["values"], memory["values"])
    np.testing.assert_array_equal(result["final_states"][0], finals[0])
    assert (encoder.depth, encoder.final_depth) == (8, 2 * 8)
    assert encoder.head_names == ("source",)
    assert encoder.encode_with_attention(IDS)[1].shape == (2, 2, 2, 4, 4)


def test_without_a_recurrent_encoder_there_are_no_final_states():
    encoder = stack([CONVOLUTIONAL])
    assert encoder.final_depth == 0
    assert "final_states" not in encoder(IDS)
    assert encoder.head_names == ()


def test_only_its_own_encoder_drops_the_outputs_of_a_layer():
    """An encoder that reads another one does not apply dropout again."""
    encoder = stack([CONVOLUTIONAL, {"type": "recurrent", "units": 4}, TRANSFORMER], dropout=0.5)
    _, recurrent, transformer = encoder.encoders
    assert len(recurrent.dropouts) == 1
    assert transformer.dropout.rate == 0.0
    assert transformer.blocks[0].dropout.rate == 0.5


def test_a_model_survives_saving(tmp_path):
    encoder = stack(LIST)
    attention = {"score": "general", "heads": 2}
    decoder = LuongDecoder(
        10, encoder.depth, encoder.final_depth, embedding=3, units=4, attention=attention
    )
    model = Seq2Seq(encoder, decoder, share_embeddings=True)
    model.build()
    assert round_trip(encoder).get_config() == encoder.get_config()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    target = np.array([[4, 5, 3], [6, 3, 0]], "int32")
    for ours, theirs in zip(
        model.teacher_force(IDS, target), loaded.teacher_force(IDS, target), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    heads = model.heads(IDS, target)
    assert heads["source"].shape == (2, 2, 2, 4, 4)


@pytest.mark.parametrize("positions", ["relative", "alibi"])
def test_mixed_precision(positions):
    encoders = [CONVOLUTIONAL, RECURRENT, {**TRANSFORMER, "positions": positions}]
    exact = stack(encoders)
    mixed = stack(encoders, dtype="mixed_bfloat16")
    mixed.set_weights(exact.get_weights())
    values = mixed(IDS)["values"]
    assert keras.backend.standardize_dtype(values.dtype) == "bfloat16"
    assert_close(values, exact(IDS)["values"], "bfloat16", roundings=12)


def test_an_unknown_type_is_refused():
    with pytest.raises(ValueError, match="Unknown encoder 'recurent'"):
        EncoderStack(10, [{"type": "recurent"}])
