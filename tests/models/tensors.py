"""Helpers for the tests of layers and models."""

import keras
import numpy as np
import tensorflow as tf


def numpy(x, dtype="float64"):
    return keras.ops.convert_to_numpy(keras.ops.cast(x, dtype))


def fill(layer, random, scale=1.0):
    """Assign random numbers to all weights, because zero biases would test nothing."""
    for weight in layer.trainable_weights:
        weight.assign(random.normal(size=weight.shape) * scale)
    return layer


def weights_by_name(layer):
    """The weights in float64, by their path below the layer."""
    return {w.path.split("/", 1)[1]: np.asarray(w, "float64") for w in layer.weights}


def round_trip(value):
    return keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(value))


def train(model, inputs, steps):
    """Take some steps of training on one batch, and return the plain loss of each."""
    losses = []
    for _ in range(steps):
        model.reset_metrics()
        losses.append(float(model.train_on_batch(inputs, return_dict=True)["plain_loss"]))
    return losses


def gradients(function, *inputs, layer=None):
    """Gradients of a scalar function for its inputs and a layer's weights; zeros for none."""
    tensors = [tf.constant(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = function(*tensors)
    weights = [w.value for w in layer.trainable_weights] if layer else []
    result = tape.gradient(value, [*tensors, *weights], unconnected_gradients="zero")
    return [np.asarray(tf.convert_to_tensor(gradient)) for gradient in result]
