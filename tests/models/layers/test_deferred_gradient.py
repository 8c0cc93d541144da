"""A gradient that is formed behind a loop is the one that the loop would add up."""

import keras
import numpy as np
import pytest

from regard.models.layers.deferred_gradient import DeferredWeightGradient, previous_states

STEPS, BATCH, UNITS = 7, 6, 4


def gradients(lead, deferred_gradient, dtype="float32"):
    """Of a kernel, a bias and the inputs of a recurrence h_t = tanh(x_t + b + h_{t-1} W)."""
    import tensorflow as tf

    draw = np.random.default_rng(3)
    inputs, kernel, bias = (
        tf.constant(draw.normal(size=shape).astype("float32"))
        for shape in (
            (STEPS, *lead, BATCH, UNITS),
            (*lead, UNITS, UNITS),
            (*lead, 1, UNITS) if lead else (UNITS,),
        )
    )
    weights = tf.Variable(kernel), tf.Variable(bias)

    @tf.function
    def graph(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            cast = [keras.ops.cast(x, dtype) for x in (inputs, *weights)]
            product = (
                DeferredWeightGradient([weights[0]], weights[1], dtype)
                if deferred_gradient
                else None
            )
            offsets = product.offsets(cast[0]) if deferred_gradient else cast[0] + cast[2]
            start = keras.ops.zeros_like(cast[0][0])

            def step(state, now):
                kernel = product.matrix() if deferred_gradient else cast[1]
                new = keras.ops.tanh(now + keras.ops.matmul(state, kernel))
                return new, new

            _, states = keras.ops.scan(step, start, offsets)
            if deferred_gradient:
                product.set_inputs(previous_states(start, states))
            value = tf.reduce_sum(tf.cast(states, "float32")[-1] ** 2)
        return tape.gradient(value, [inputs, *weights])

    return [np.asarray(x) for x in graph(inputs)]


@pytest.mark.parametrize("lead", [(), (2,)], ids=["one", "side by side"])
def test_equals_the_sum_of_all_steps(lead):
    for ours, theirs in zip(gradients(lead, True), gradients(lead, False), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_in_bfloat16_it_is_no_further_from_float32():
    exact = gradients((), False)[1]
    deferred_gradient, by_steps = (
        np.abs(gradients((), way, "bfloat16")[1] - exact).max() for way in (1, 0)
    )
    assert deferred_gradient <= by_steps * 1.1
    assert deferred_gradient < 0.05 * np.abs(exact).max()


def test_what_each_step_began_with():
    result = previous_states(np.array([1.0]), np.array([[2.0], [3.0], [4.0]]))
    np.testing.assert_array_equal(result, [[1.0], [2.0], [3.0]])


def test_a_gradient_from_outside_of_the_graph_finds_the_inputs():
    import tensorflow as tf

    from regard.models.encoders import RecurrentEncoder

    encoder = RecurrentEncoder(9, embedding=3, units=4, layers=2)
    encoder.build()
    ids = tf.constant([[5, 6, 7, 3], [4, 3, 0, 0]])

    def gradients(call):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(call(ids, training=True)["values"] ** 2)
        result = tape.gradient(value, [weight.value for weight in encoder.trainable_weights])
        return [tf.convert_to_tensor(one) for one in result]

    for ours, theirs in zip(gradients(tf.function(encoder)), gradients(encoder), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
