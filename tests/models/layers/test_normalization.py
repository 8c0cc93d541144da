import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.models.layers.normalization import LayerNormalization
from tests.models.tensors import gradients, numpy
from tests.tolerances import assert_close


def pair(dtype):
    """Ours and Keras's, with the same weights, which are not those of the beginning."""
    random = np.random.default_rng(7)
    result = []
    for kind in (LayerNormalization, keras.layers.LayerNormalization):
        layer = kind(epsilon=1e-5, dtype=dtype)
        layer.build((None, None, 6))
        result.append(layer)
    weights = [random.normal(size=6), random.normal(size=6)]
    for layer in result:
        layer.set_weights(weights)
    return result


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1e-5), ("mixed_bfloat16", 2e-2)])
def test_equals_keras_with_its_gradients(dtype, bound):
    random = np.random.default_rng(8)
    ours, theirs = pair(dtype)
    # Of unlike sizes, and one row whose numbers are all the same.
    inputs = random.normal(size=(3, 4, 6)) * np.array([0.1, 1.0, 30.0])[:, None, None]
    inputs[0, 0] = 2.0
    inputs = tf.cast(inputs, ours.compute_dtype)
    upstream = random.normal(size=(3, 4, 6)).astype("float32")

    def computed(layer, **options):
        def value(inputs):
            return tf.reduce_sum(tf.cast(layer(inputs, **options), "float32") * upstream)

        return [layer(inputs, **options), *gradients(value, inputs, layer=layer)]

    for mine, other in zip(computed(ours, training=True), computed(theirs), strict=True):
        mine, other = numpy(mine), numpy(other)
        np.testing.assert_allclose(mine, other, atol=bound * np.abs(other).max())
    np.testing.assert_array_equal(ours(inputs), theirs(inputs))


def test_equals_the_formula():
    ours, _ = pair("float32")
    inputs = np.random.default_rng(9).normal(size=(2, 6))
    gamma, beta = (np.array(weight) for weight in ours.weights)
    centred = inputs - inputs.mean(-1, keepdims=True)
    expected = gamma * centred / np.sqrt(inputs.var(-1, keepdims=True) + 1e-5) + beta
    assert_close(ours(inputs, training=True), expected)


@pytest.mark.parametrize(
    "options",
    [
        *({"axis": axis} for axis in (1, 2, [1, 2])),
        *({name: False} for name in ("center", "scale")),
        {"rms_scaling": True},
        {"center": False, "scale": False},
    ],
    ids=str,
)
def test_every_option_of_keras_in_training(options):
    random = np.random.default_rng(10)
    inputs = random.normal(size=(2, 3, 6)).astype("float32")
    upstream = random.normal(size=inputs.shape).astype("float32")
    results = []
    for kind in (LayerNormalization, keras.layers.LayerNormalization):
        layer = kind(**options)
        layer.build(inputs.shape)
        layer.set_weights([np.random.default_rng(3).normal(size=w.shape) for w in layer.weights])

        def value(inputs, layer=layer):
            training = {"training": True} if type(layer) is LayerNormalization else {}
            return tf.reduce_sum(layer(inputs, **training) * upstream)

        results.append([value(inputs), *gradients(value, inputs, layer=layer)])
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours, theirs)
