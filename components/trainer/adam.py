"""Adam in one pass over the weights.

Keras writes an update as a dozen operations, each of which reads and writes as many numbers as
there are weights. That was an eighth of the time of a small Transformer's step on a CPU.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


class _OnePass:
    """What is the same with weight decay and without; the formulas are Keras's own."""

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Changes one weight and its moments."""
        adam: Any = self
        place = adam._get_variable_index(variable)
        dtype = tf.as_dtype(variable.dtype)
        beta_1, beta_2 = (tf.constant(beta, dtype) for beta in (adam.beta_1, adam.beta_2))
        steps = tf.cast(adam.iterations, dtype) + 1
        tf.raw_ops.ResourceApplyAdam(
            var=_handle(variable),
            m=_handle(adam._momentums[place]),
            v=_handle(adam._velocities[place]),
            beta1_power=tf.pow(beta_1, steps),
            beta2_power=tf.pow(beta_2, steps),
            lr=tf.cast(learning_rate, dtype),
            beta1=beta_1,
            beta2=beta_2,
            epsilon=tf.constant(adam.epsilon, dtype),
            grad=tf.cast(tf.convert_to_tensor(gradient), dtype),
        )

    def _clip_gradients(self, grads: list[Any]) -> list[Any]:
        """The gradients, shorter where their common norm is too long."""
        bound = getattr(self, "global_clipnorm", None)
        if not bound:
            return grads
        # Whole tensors: what lookups of one piece add up to is not seen in their parts.
        whole = [None if grad is None else tf.convert_to_tensor(grad) for grad in grads]
        return tf.clip_by_global_norm(whole, bound)[0]


class Adam(_OnePass, keras.optimizers.Adam):
    """Kingma & Ba 2015, "Adam: A Method for Stochastic Optimization", Algorithm 1."""


class AdamW(_OnePass, keras.optimizers.AdamW):
    """Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization", Algorithm 2."""


def _handle(variable: Any) -> Any:
    """The resource of a variable, Keras's or TensorFlow's."""
    return (variable.value if isinstance(variable, keras.Variable) else variable).handle
