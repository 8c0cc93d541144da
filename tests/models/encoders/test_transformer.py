import keras
import numpy as np
import pytest

from regard.models.encoders.transformer import TransformerEncoder

IDS = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")
VARIANTS = [
    {"norm": norm, "positions": positions, "activation": activation}
    for norm, positions, activation in [
        ("pre", "sinusoidal", "relu"),
        ("post", "learned", "gelu"),
        ("pre", "rotary", "swiglu"),
    ]
]


def created(**settings):
    encoder = TransformerEncoder(
        10, **{"embedding": 8, "layers": 2, "heads": 2, "feed_forward": 6, **settings}
    )
    encoder.build()
    return encoder


@pytest.mark.parametrize("settings", VARIANTS)
def test_a_padded_row_gives_what_it_gives_alone(settings):
    encoder = created(**settings)
    beam_width, alone = encoder(IDS), encoder(IDS[1:, :2])
    np.testing.assert_allclose(beam_width["values"][1:, :2], alone["values"], atol=1e-5)
    assert (keras.ops.convert_to_numpy(beam_width["values"])[1, 2:] == 0).all()
    np.testing.assert_array_equal(beam_width["mask"], IDS != 0)
    assert beam_width["values"].shape == (2, 4, encoder.depth)


@pytest.mark.parametrize("settings", VARIANTS)
def test_the_heads_of_all_layers(settings):
    encoder = created(layers=3, **settings)
    memory, weights = encoder.encode_with_attention(IDS)
    np.testing.assert_array_equal(memory["values"], encoder(IDS)["values"])
    weights = np.asarray(weights)
    assert weights.shape == (2, 3, 2, 4, 4)
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
    assert (weights[1, ..., 2:] == 0).all()
    _, alone = encoder.encode_with_attention(IDS[1:, :2])
    np.testing.assert_allclose(weights[1:, ..., :2, :2], alone, atol=1e-5)


@pytest.mark.parametrize("settings", VARIANTS)
def test_the_order_matters(settings):
    encoder = created(**settings)
    there, back = encoder(IDS[:1]), encoder(IDS[:1, ::-1])
    assert not np.allclose(there["values"], back["values"][:, ::-1], atol=1e-3)


def test_it_starts_from_scaled_embeddings_and_sinusoids():
    encoder = created(layers=1)
    for weight in encoder.blocks[0].weights:
        weight.assign(np.zeros(weight.shape))  # only the way around the parts is left
    vectors = np.asarray(encoder.embedding.table)[IDS] * np.sqrt(8)
    phase = np.arange(4)[:, None] / 10000 ** (np.arange(0, 8, 2) / 8)
    vectors = vectors + np.stack([np.sin(phase), np.cos(phase)], -1).reshape(4, 8)
    centred = vectors - vectors.mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(encoder(IDS)["values"][0], expected[0], atol=1e-4)


def test_a_row_that_is_all_padding_is_zero():
    values = keras.ops.convert_to_numpy(created()(np.zeros((1, 3), "int32"))["values"])
    assert (values == 0).all()


def test_a_source_beyond_the_learned_positions_is_no_error():
    encoder = created(positions="learned", max_positions=3)
    values = keras.ops.convert_to_numpy(encoder(np.full((1, 9), 4, "int32"))["values"])
    assert np.isfinite(values).all()


def test_dropout_only_in_training():
    encoder = created(dropout=0.5)
    still = encoder(IDS)["values"]
    np.testing.assert_array_equal(still, encoder(IDS)["values"])
    assert not np.allclose(still, encoder(IDS, training=True)["values"])


@pytest.mark.parametrize("settings", VARIANTS)
def test_compiled_equals_eager(settings):
    import tensorflow as tf

    encoder = created(**settings)
    compiled = tf.function(lambda ids: encoder(ids)["values"], jit_compile=True)
    np.testing.assert_allclose(compiled(IDS), encoder(IDS)["values"], atol=1e-5)


def test_mixed_precision_is_close():
    exact, rough = created(), created(dtype="mixed_bfloat16")
    rough.set_weights(exact.get_weights())
    result = rough(IDS)["values"]
    assert result.dtype == "bfloat16"
    np.testing.assert_allclose(keras.ops.cast(result, "float32"), exact(IDS)["values"], atol=0.15)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"positions": "sinusoid"}, "Did you mean sinusoidal"),
        ({"heads": 3}, "8 cannot be divided into 3"),
        ({"layers": 0}, "at least one layer, not 0"),
        ({"embedding": 6, "positions": "rotary"}, "even depth, not 3"),
    ],
)
def test_invalid_arguments(settings, message):
    with pytest.raises(ValueError, match=message):
        created(**settings)


def test_config_round_trip():
    encoder = created(**VARIANTS[2], dropout=0.1)
    assert TransformerEncoder.from_config(encoder.get_config()).get_config() == encoder.get_config()


POINTS = np.random.default_rng(2).uniform(-1, 1, (2, 4, 3)).astype("float32")
POINTS[..., 2] = [[1, 1, 1, 1], [1, 1, 0, 0]]
POINTS[1, 2:] = 0


def of_points(**settings):
    settings = {"embedding": 8, "layers": 2, "heads": 2, "feed_forward": 6, **settings}
    encoder = TransformerEncoder(None, **settings)
    encoder.build()
    return encoder


@pytest.mark.parametrize("positions", ["none", "sinusoidal"])
def test_points_are_read_too(positions):
    encoder = of_points(positions=positions)
    beam_width, alone = encoder(POINTS), encoder(POINTS[1:, :2])
    np.testing.assert_allclose(beam_width["values"][1:, :2], alone["values"], atol=1e-5)
    assert (keras.ops.convert_to_numpy(beam_width["values"])[1, 2:] == 0).all()
    np.testing.assert_array_equal(beam_width["mask"], POINTS[..., 2] == 1)
    assert beam_width["values"].shape == (2, 4, encoder.depth)
    again = TransformerEncoder.from_config(encoder.get_config())
    again.build()
    again.set_weights(encoder.get_weights())
    np.testing.assert_array_equal(again(POINTS)["values"], beam_width["values"])


def test_without_positions_the_order_does_not_matter():
    encoder, order = of_points(positions="none"), [2, 0, 3, 1]
    there, shuffled = encoder(POINTS[:1])["values"], encoder(POINTS[:1, order])["values"]
    np.testing.assert_allclose(keras.ops.convert_to_numpy(there)[:, order], shuffled, atol=1e-5)
    encoder = of_points(positions="sinusoidal")
    there, shuffled = encoder(POINTS[:1])["values"], encoder(POINTS[:1, order])["values"]
    assert not np.allclose(keras.ops.convert_to_numpy(there)[:, order], shuffled, atol=1e-3)
