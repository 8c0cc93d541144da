"""Copying compared with NumPy."""

import keras
import numpy as np

from regard.models.layers.copying import Copying
from tests.models.attention import reference
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(2)
LOGITS = RANDOM.normal(size=(2, 3, 7)).astype("float32")
IDS = np.array([[4, 7, 4, 8], [6, 7, 0, 0]], "int32")
WEIGHTS = RANDOM.random((2, 3, 4)).astype("float32") * (IDS != 0)[:, None]
WEIGHTS /= WEIGHTS.sum(-1, keepdims=True)
FEATURES = RANDOM.normal(size=(2, 3, 5)).astype("float32")


def created(**options):
    keras.utils.set_random_seed(1)
    layer = Copying(**options)
    layer.build(LOGITS.shape, WEIGHTS.shape, IDS.shape, FEATURES.shape)
    return layer


def expected_mixture(layer):
    kernel, bias = (np.asarray(w, "float64") for w in layer.gate.weights)
    generate = reference.sigmoid(FEATURES @ kernel + bias)
    mixed = np.zeros((2, 3, 11))
    for row, step in np.ndindex(2, 3):
        vocabulary = np.pad(reference.softmax(LOGITS[row, step].astype("float64")), (0, 4))
        mixed[row, step] = reference.pointer_generator(
            vocabulary, WEIGHTS[row, step], IDS[row], generate[row, step, 0]
        )
    return mixed


def test_as_its_formula():
    layer = created()
    result = np.asarray(layer(LOGITS, WEIGHTS, IDS, FEATURES), "float64")
    assert_close(np.exp(result), expected_mixture(layer))
    assert_close(np.exp(result).sum(-1), 1.0)


def test_a_piece_that_stands_twice_gets_both_weights():
    result = Copying.distribution(WEIGHTS, IDS, 11)
    assert_close(result[0, :, 4], WEIGHTS[0, :, 0] + WEIGHTS[0, :, 2])
    np.testing.assert_array_equal(result[1, :, 0], 0.0)


def test_without_a_look_everything_is_written():
    result = created()(LOGITS, np.zeros_like(WEIGHTS), IDS, FEATURES)
    assert_close(result[..., :7], keras.ops.log_softmax(LOGITS))


def test_half_precision():
    layer = created(dtype=keras.DTypePolicy("mixed_float16"))
    half = keras.ops.cast(LOGITS, layer.compute_dtype)
    result = layer(half, WEIGHTS, IDS, keras.ops.cast(FEATURES, layer.compute_dtype))
    assert keras.backend.standardize_dtype(result.dtype) == "float32"
    assert_close(np.exp(result).sum(-1), 1.0)
