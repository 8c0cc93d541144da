import keras
import numpy as np
import pytest

from regard.models.layers.positions import (
    POSITIONS,
    LearnedPositions,
    MarianPositions,
    NoPositions,
    RotaryPositions,
    SinusoidalPositions,
    Tensor2TensorPositions,
    rotate,
)
from tests.models.layers import reference
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(6)


def positions(*values):
    return np.array([values], "int32")


@pytest.mark.parametrize("depth", [6, 7])
def test_sinusoids_equal_the_paper(depth):
    at = positions(0, 1, 5, 300)
    result = SinusoidalPositions()(np.zeros((1, 4, depth), "float32"), at)
    expected = reference.sinusoids(301, depth)[at[0]]
    assert_close(result[0], expected, roundings=1000)


@pytest.mark.parametrize("depth", [6, 7])
def test_positions_of_marian_are_the_sines_then_the_cosines(depth):
    result = MarianPositions()(np.zeros((1, 4, depth), "float32"), positions(0, 1, 5, 300))
    paper = reference.sinusoids(301, depth)[[0, 1, 5, 300]]
    expected = np.concatenate([paper[:, 0::2], paper[:, 1::2]], axis=-1)
    assert_close(result[0], expected, roundings=1000)


@pytest.mark.parametrize(("depth", "first"), [(6, 0), (6, 2), (7, 1), (2, 0)])
def test_positions_of_tensor2tensor_end_with_the_longest_wave(depth, first):
    layer = Tensor2TensorPositions(first=first)
    result = layer(np.zeros((1, 3, depth), "float32"), positions(0, 5, 300))
    half = depth // 2
    waves = 10000.0 ** (np.arange(half) / max(half - 1, 1))
    phase = (np.array([0, 5, 300]) + first)[:, None] / waves
    expected = np.concatenate([np.sin(phase), np.cos(phase), np.zeros((3, depth % 2))], axis=-1)
    assert_close(result[0], expected, roundings=1000)


def test_learned_positions_are_rows_and_the_last_one_stands_for_all_beyond():
    layer = LearnedPositions(max_positions=4)
    vectors = RANDOM.normal(size=(2, 5, 3)).astype("float32")
    result = layer(vectors, positions(0, 1, 3, 4, 1000))
    table = np.asarray(layer.table)
    assert_close(result, vectors + table[[0, 1, 3, 3, 3]])


@pytest.mark.parametrize("make", [SinusoidalPositions, LearnedPositions])
def test_concatenated_positions_are_projected_with_the_vectors(make):
    vectors, at = RANDOM.normal(size=(2, 3, 4)).astype("float32"), positions(0, 1, 5)
    layer = make(max_positions=8, merge="concat")
    result = layer(vectors, at)
    kernel, bias = (np.asarray(w, "float64") for w in layer.project.weights)
    encoded = np.broadcast_to(layer.position_vectors(at, 4), (2, 3, 4))
    expected = np.concatenate([vectors, encoded], -1) @ kernel + bias
    assert_close(result, expected)
    added = make(max_positions=8)
    added.build((None, None, 4))
    added.set_weights(layer.get_weights()[: len(added.weights)])
    assert_close(added(vectors, at), vectors + encoded)
    with pytest.raises(ValueError, match="Unknown merge 'sum'"):
        make(merge="sum")


def test_no_positions_change_nothing():
    vectors = RANDOM.normal(size=(2, 5, 3)).astype("float32")
    layer = NoPositions()
    np.testing.assert_array_equal(layer(vectors, positions(0, 1, 3, 4, 1000)), vectors)
    assert layer.angles(positions(0, 1), 4) is None
    assert layer.weights == []


@pytest.mark.parametrize("shift", [1, 40])
def test_rotated_products_depend_on_the_distance_alone(shift):
    layer = RotaryPositions()
    query, keys = RANDOM.normal(size=(2, 1, 2, 3, 8)).astype("float32")

    def products(at):
        angles = layer.angles(at, 8)
        return np.asarray(rotate(query, angles)) @ np.swapaxes(rotate(keys, angles), -1, -2)

    at = positions(0, 2, 7)
    assert_close(products(at), products(at + shift), roundings=1000)
    assert not np.allclose(products(at), query @ np.swapaxes(keys, -1, -2), atol=1e-2)


def test_a_rotation_turns_each_pair_by_its_angle():
    at, depth = positions(3, 0, 7), 6
    vectors = RANDOM.normal(size=(1, 1, 3, depth)).astype("float32")
    result = rotate(vectors, RotaryPositions().angles(at, depth))
    assert_close(result[0, 0], reference.rotate(vectors[0, 0].astype("float64"), at[0]))


@pytest.mark.parametrize("name", sorted(POSITIONS))
def test_rows_may_be_at_different_positions(name):
    layer = POSITIONS[name]()
    vectors = RANDOM.normal(size=(2, 1, 8)).astype("float32")
    at = np.array([[3], [5]], "int32")
    batched = layer(vectors, at)
    for row in (slice(0, 1), slice(1, 2)):
        assert_close(batched[row], layer(vectors[row], at[row]))
    if layer.angles(at, 4) is not None:
        heads = RANDOM.normal(size=(2, 2, 1, 4)).astype("float32")
        turned = rotate(heads, layer.angles(at, 4))
        one = rotate(heads[1:], layer.angles(at[1:], 4))
        assert_close(turned[1:], one)


@pytest.mark.parametrize("name", sorted(POSITIONS))
def test_positions_count_from_zero_and_keep_the_mask(name):
    layer = POSITIONS[name]()
    embedded = keras.layers.Embedding(9, 4, mask_zero=True)(np.array([[1, 2, 0], [3, 0, 0]]))
    result = layer(embedded)
    assert_close(result, layer(embedded, positions(0, 1, 2)))
    np.testing.assert_array_equal(result._keras_mask, [[1, 1, 0], [1, 0, 0]])
