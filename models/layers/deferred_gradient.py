"""The gradient of a loop's weights as one matrix product after the loop."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from regard.models.tensors import Tensor


class DeferredWeightGradient:
    """A matrix that multiplies at every step of a loop and gets its gradient after the loop.

    Normally the gradient of y_t = o_t + x_t W is a product per step, added to a sum of the size of
    W; reading and writing that sum takes longer than the steps. Here the loop treats W as a
    constant, and its gradient Σ x_t' · dy_t is one product of all x with all dy. The loop returns
    dy_t as the gradient of the offsets o_t, which are computed outside of the loop.

    For training on TensorFlow. JAX traces the gradient before there are any x, so there and on
    PyTorch it is computed in the loop.

    Args:
        weights: the matrices ``[..., depth, width]`` that make up W, stacked along ``depth``.
        bias: added to every offset, ``[width]`` or ``[..., 1, width]``.
        dtype: the dtype of the computation.

    Example:
        >>> gradient = DeferredWeightGradient([kernel], bias, "float32")
        >>> offsets = gradient.offsets(projected)     # o, [steps, batch, width]
        >>> ...                                       # a loop: o_t + matmul(x_t, gradient.matrix())
        >>> gradient.set_inputs(inputs)               # x, [steps, batch, depth]
    """

    def __init__(self, weights: Sequence[Tensor], bias: Tensor, dtype: str):
        row = ops.reshape(bias, (*weights[0].shape[:-2], 1, weights[0].shape[-1]))
        self._weights_and_bias = ops.concatenate([*weights, row], axis=-2)
        cast = ops.cast(self._weights_and_bias, dtype)
        self._matrix, self._bias = cast[..., :-1, :], cast[..., -1:, :]
        self._is_deferred = keras.backend.backend() == "tensorflow"
        self._inputs: Any = None

    def matrix(self) -> Tensor:
        """Return W; call it inside of the loop."""
        return ops.stop_gradient(self._matrix) if self._is_deferred else self._matrix

    def offsets(self, offsets: Tensor) -> Tensor:
        """Return offsets ``[steps, ..., batch, width]`` plus the bias, for use in the loop."""
        if not self._is_deferred:
            return offsets + self._bias

        @ops.custom_gradient
        def add_bias(offsets: Tensor, weights_and_bias: Tensor) -> tuple[Tensor, Any]:
            def gradient(*args: Tensor, upstream: Tensor = None) -> tuple[Tensor, Tensor]:
                (upstream,) = args or (upstream,)
                flat = _flatten_steps(upstream)
                # The bias gradient is a product too: a long sum in bfloat16 is slow and inexact.
                inputs = (_flatten_steps(self._inputs), ops.ones_like(flat[..., :1]))
                sums = [ops.matmul(ops.swapaxes(x, -1, -2), flat) for x in inputs]
                return upstream, ops.cast(ops.concatenate(sums, axis=-2), weights_and_bias.dtype)

            return offsets + ops.stop_gradient(self._bias), gradient

        return add_bias(offsets, self._weights_and_bias)

    def set_inputs(self, inputs: Tensor) -> None:
        """Set the factors of W in all steps, ``[steps, ..., batch, depth]``, after the loop."""
        self._inputs = ops.stop_gradient(inputs)


def previous_states(first: Tensor, states: Tensor) -> Tensor:
    """Return the state before each step from the first state and the states after the steps."""
    return ops.concatenate([first[None], states[:-1]], axis=0)


def _flatten_steps(x: Tensor) -> Tensor:
    """Reshape ``[steps, ..., batch, depth]`` to ``[..., steps * batch, depth]``."""
    depth = x.shape[-1]
    if len(x.shape) == 3:
        return ops.reshape(x, (-1, depth))
    return ops.reshape(ops.swapaxes(x, 0, 1), (x.shape[1], -1, depth))
