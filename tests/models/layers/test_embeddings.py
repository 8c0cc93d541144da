import keras
import numpy as np
import pytest
from keras import ops

from regard.models.layers.embeddings import PointEmbedding, TokenEmbedding, source_embedding
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(7)
IDS = np.array([[3, 1, 4, 0], [1, 5, 5, 2]])


def make(vocabulary=6, depth=4, **settings):
    layer = TokenEmbedding(vocabulary, depth, **settings)
    layer.build()
    return layer


@pytest.mark.parametrize(("scale", "factor"), [(False, 1.0), (True, 2.0)])
def test_a_piece_has_its_row(scale, factor):
    layer = make(scale=scale)
    table = np.asarray(layer.table)
    np.testing.assert_allclose(layer(IDS), factor * table[IDS], rtol=1e-6)


def test_the_table_is_drawn_with_a_variance_of_one_over_the_depth():
    table = np.asarray(make(2000, 64).table)
    assert table.std() == pytest.approx(64**-0.5, rel=0.02)
    assert abs(table.mean()) < 0.002


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_attend_is_a_product_with_the_table_itself(scale, shape):
    layer = make(scale=scale)
    hidden = RANDOM.normal(size=shape).astype("float32")
    expected = np.einsum("...d,vd->...v", hidden.astype("float64"), np.asarray(layer.table))
    result = layer.attend(ops.convert_to_tensor(hidden))
    assert result.shape == (*shape[:-1], 6)
    assert_close(result, expected)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_computes_low_and_keeps_the_table_high(policy):
    layer = make(scale=True, dtype=policy)
    low = policy.removeprefix("mixed_")
    vectors = layer(IDS)
    scores = layer.attend(vectors)
    kinds = [keras.backend.standardize_dtype(t.dtype) for t in (vectors, scores, layer.table)]
    assert kinds == [low, low, "float32"]
    exact = 4 * np.asarray(layer.table)[IDS] @ np.asarray(layer.table).T / 2
    assert_close(scores, exact, low, roundings=4)


def test_padding_is_no_piece():
    np.testing.assert_array_equal(make().mask(IDS), IDS != 0)


def points(seed=3):
    """Two rows, the second padded."""
    result = np.random.default_rng(seed).normal(size=(2, 3, 3)).astype("float32")
    result[..., 2] = 1.0
    result[1, 2] = 0.0
    return result


def test_a_point_is_mapped_and_padding_is_nothing():
    layer = PointEmbedding(5)
    result = np.asarray(layer(points()))
    assert_close(result, points() @ np.asarray(layer.kernel))
    assert (result[1, 2] == 0).all()
    np.testing.assert_array_equal(layer.mask(points()), [[True] * 3, [True, True, False]])


def test_the_vectors_of_points_are_as_great_as_the_points():
    x = np.random.default_rng(0).uniform(-1, 1, (4, 50, 3)).astype("float32")
    x[..., 2] = 1.0
    assert np.asarray(PointEmbedding(512)(x)).std() == pytest.approx((5 / 9) ** 0.5, rel=0.1)


def test_source_embedding():
    tokens = source_embedding(6, 4, 0.1, scale=True, name="embedding")
    assert isinstance(tokens, TokenEmbedding)
    assert (tokens.scale, tokens.settings["dropout"]) == (True, 0.1)
    points = source_embedding(None, 4, 0.1, scale=True, name="embedding")
    assert isinstance(points, PointEmbedding)
    assert points.settings == {"depth": 4, "dropout": 0.1, "dimensions": 2}
