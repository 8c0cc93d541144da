import numpy as np
import pytest

from regard.models.encoders.transformer import TransformerEncoder
from tests.tolerances import assert_close

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
def test_the_heads_of_all_layers(settings):
    encoder = created(layers=3, **settings)
    memory, weights = encoder.encode_with_attention(IDS)
    np.testing.assert_array_equal(memory["values"], encoder(IDS)["values"])
    weights = np.asarray(weights)
    assert weights.shape == (2, 3, 2, 4, 4)
    assert_close(weights.sum(-1), 1.0)
    assert (weights[1, ..., 2:] == 0).all()
    _, alone = encoder.encode_with_attention(IDS[1:, :2])
    assert_close(weights[1:, ..., :2, :2], alone)


@pytest.mark.parametrize("settings", VARIANTS)
def test_an_end_that_is_not_read_is_padding(settings):
    encoder = created(**settings, read_end=False)
    memory, weights = encoder.encode_with_attention(IDS)
    np.testing.assert_array_equal(memory["mask"], [[1, 1, 1, 0], [1, 0, 0, 0]])
    reading = created(**settings)
    reading.set_weights(encoder.get_weights())
    without_end = reading(np.array([[5, 6, 7], [4, 0, 0]], "int32"))
    assert_close(memory["values"][:, :3], without_end["values"])
    assert (np.asarray(memory["values"])[:, 3] == 0).all()
    assert (np.asarray(weights)[0, ..., 3] == 0).all()
    assert np.isfinite(encoder(np.array([[3, 0]], "int32"))["values"]).all()
    assert not np.allclose(reading(IDS)["values"][:, :3], without_end["values"], atol=1e-3)


@pytest.mark.parametrize("vocabulary", [None, 0])
def test_only_tokens_have_an_end(vocabulary):
    with pytest.raises(ValueError, match="read_end"):
        TransformerEncoder(vocabulary, embedding=8, heads=2, layers=1, read_end=False)


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
    assert_close(encoder(IDS)["values"][0], expected[0], roundings=1000)


def test_a_source_beyond_the_learned_positions_is_no_error():
    encoder = created(positions="learned", max_positions=3)
    assert np.isfinite(encoder(np.full((1, 9), 4, "int32"))["values"]).all()


def test_without_positions_the_order_does_not_matter():
    encoder = created(positions="none")
    there, back = encoder(IDS[:1])["values"], encoder(IDS[:1, ::-1])["values"]
    assert_close(there, back[:, ::-1])
