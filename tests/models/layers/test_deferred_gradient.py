"""A gradient that is formed behind a loop is the one that the loop would add up."""

import keras
import numpy as np
import tensorflow as tf

from regard.models.encoders import RecurrentEncoder
from regard.models.layers.deferred_gradient import DeferredWeightGradient, previous_states
from tests.models.tensors import gradients
from tests.tolerances import assert_close

STEPS, BATCH, UNITS = 7, 6, 4


def computed(lead, deferred, dtype="float32"):
    """The gradients of inputs, kernel and bias of h_t = tanh(x_t + b + h_{t-1} W)."""
    draw = np.random.default_rng(3)
    shapes = (STEPS, *lead, BATCH, UNITS), (*lead, UNITS, UNITS), (*lead, 1, UNITS)
    arguments = [draw.normal(size=shape).astype("float32") for shape in shapes]

    def value(*arguments):
        inputs, kernel, bias = (keras.ops.cast(x, dtype) for x in arguments)
        product = DeferredWeightGradient([arguments[1]], arguments[2], dtype) if deferred else None
        start = keras.ops.zeros_like(inputs[0])

        def step(state, now):
            weights = product.matrix() if deferred else kernel
            new = keras.ops.tanh(now + keras.ops.matmul(state, weights))
            return new, new

        offsets = product.offsets(inputs) if deferred else inputs + bias
        _, states = keras.ops.scan(step, start, offsets)
        if deferred:
            product.set_inputs(previous_states(start, states))
        return keras.ops.sum(keras.ops.cast(states, "float32")[-1] ** 2)

    @tf.function
    def graph(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            result = value(*arguments)
        return tape.gradient(result, arguments)

    return [np.asarray(x) for x in graph(*map(tf.constant, arguments))]


def test_equals_the_sum_of_all_steps_of_two_directions():
    for ours, theirs in zip(computed((2,), True), computed((2,), False), strict=True):
        assert_close(ours, theirs)


def test_in_bfloat16_it_is_no_further_from_float32():
    exact = computed((), False)[1]
    deferred, by_steps = (
        np.abs(computed((), way, "bfloat16")[1] - exact).max() for way in (True, False)
    )
    assert deferred <= by_steps * 1.1
    assert deferred < 0.05 * np.abs(exact).max()


def test_what_each_step_began_with():
    result = previous_states(np.array([1.0]), np.array([[2.0], [3.0], [4.0]]))
    np.testing.assert_array_equal(result, [[1.0], [2.0], [3.0]])


def test_a_gradient_from_outside_of_the_graph_finds_the_inputs():
    encoder = RecurrentEncoder(9, embedding=3, units=4, layers=2)
    encoder.build()
    ids = tf.constant([[5, 6, 7, 3], [4, 3, 0, 0]])
    inside, outside = (
        gradients(
            lambda call=call: tf.reduce_sum(call(ids, training=True)["values"] ** 2), layer=encoder
        )
        for call in (encoder, tf.function(encoder))
    )
    for ours, theirs in zip(outside, inside, strict=True):
        assert_close(ours, theirs)
