import keras
import numpy as np
import pytest

from models.attention import ALIGNMENTS, SCORES, Attention
from models.attention.alignments import masked_softmax

RANDOM = np.random.default_rng(5)
PAIRS = [(score, alignment) for score in sorted(SCORES) for alignment in sorted(ALIGNMENTS)]


def inputs(depth=6):
    query = RANDOM.normal(size=(3, 2, depth)).astype("float32")
    memory = RANDOM.normal(size=(3, 5, depth)).astype("float32")
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], bool)
    return query, memory, mask


def test_softmax_equals_the_formula():
    scores = RANDOM.normal(size=(2, 3, 4)) * 5
    mask = np.array([[[1, 1, 1, 0]], [[1, 0, 1, 1]]], bool)
    expected = np.exp(scores) * mask
    expected /= expected.sum(-1, keepdims=True)
    found = masked_softmax(scores.astype("float32"), mask)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("score", "alignment"), PAIRS)
def test_context_is_the_weighted_sum(score, alignment):
    query, memory, mask = inputs()
    context, weights = Attention(score, alignment)(query, memory, mask=mask)
    weights = keras.ops.convert_to_numpy(weights)
    assert (weights >= 0).all()
    assert (weights[1, :, 2:] == 0).all()
    np.testing.assert_allclose(weights[:2].sum(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(context, np.einsum("bts,bsd->btd", weights, memory), atol=1e-5)


@pytest.mark.parametrize(("score", "alignment"), PAIRS)
def test_a_row_without_a_source_gives_zeros(score, alignment):
    query, memory, mask = inputs()
    context, weights = Attention(score, alignment)(query, memory, mask=mask)
    assert (keras.ops.convert_to_numpy(context)[2] == 0).all()
    assert (keras.ops.convert_to_numpy(weights)[2] == 0).all()


@pytest.mark.parametrize(("score", "alignment"), PAIRS)
def test_padding_changes_nothing(score, alignment):
    query, memory, mask = inputs()
    attention = Attention(score, alignment)
    context, weights = attention(query, memory, mask=mask)
    alone, alone_weights = attention(query[1:2], memory[1:2, :2], mask=mask[1:2, :2])
    np.testing.assert_allclose(context[1:2], alone, atol=1e-5)
    np.testing.assert_allclose(weights[1:2, :, :2], alone_weights, atol=1e-5)


def test_coincides_with_keras():
    query, memory, mask = inputs()
    ours, weights = Attention("dot", "soft")(query, memory, mask=mask[:, :])
    theirs, their_weights = keras.layers.Attention()(
        [query, memory],
        mask=[None, keras.ops.convert_to_tensor(mask)],
        return_attention_scores=True,
    )
    np.testing.assert_allclose(ours[:2], theirs[:2], atol=1e-5)
    np.testing.assert_allclose(weights[:2], their_weights[:2], atol=1e-5)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_low_precision_stays_finite_and_close(dtype):
    query, memory, mask = inputs()
    large = 60.0  # scores of several hundred: exp overflows float16 without float32 inside
    exact = Attention("dot", "soft")
    rough = Attention("dot", "soft", dtype=dtype)
    _, weights = exact(query * large, memory * large / 10, mask=mask)
    _, rough_weights = rough(query * large, memory * large / 10, mask=mask)
    rough_weights = keras.ops.convert_to_numpy(keras.ops.cast(rough_weights, "float32"))
    assert np.isfinite(rough_weights).all()
    assert (
        rough_weights.argmax(-1)[:2] == keras.ops.convert_to_numpy(weights).argmax(-1)[:2]
    ).all()


@pytest.mark.parametrize(("kind", "name"), [("score", "gneral"), ("alignment", "sofd")])
def test_an_unknown_name_is_refused_with_the_nearest(kind, name):
    with pytest.raises(ValueError, match=r"Did you mean '(general|soft)'"):
        Attention(**{kind: name})


def test_config_round_trip():
    layer = Attention("dot", "soft", name="looks")
    again = Attention.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


def test_compiled_equals_eager():
    import tensorflow as tf

    query, memory, mask = inputs()
    attention = Attention("general", "soft")
    eager, _ = attention(query, memory, mask=mask)
    compiled = tf.function(lambda q, m, k: attention(q, m, mask=k)[0], jit_compile=True)
    np.testing.assert_allclose(compiled(query, memory, mask), eager, atol=1e-5)
