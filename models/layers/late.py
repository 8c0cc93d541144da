"""The gradient of a loop's weights as one product behind the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


class LateGradient:
    """A matrix that every step of a loop multiplies with, and that learns from all steps at once.

    Left to itself the gradient of y_t = o_t + x_t W is a product a step, added to a sum as large as
    W: reading and writing that sum takes longer than the steps' own work. Here the loop takes W as
    fixed, and what is left is W's gradient Σ x_t' · dy_t. The loop gives dy_t as the gradient of
    the offsets o_t, which come from outside of it: so the sum is one product of all x with all dy.

    Of use for training alone. JAX asks for the gradient before there are any x; there W learns step
    by step.

    Args:
        weights: what makes the matrix ``[..., depth, wide]``, one above the other.
        bias: is added to every offset, ``[wide]`` or ``[..., 1, wide]``.
        dtype: in which the loop computes.

    Example:
        >>> late = LateGradient([kernel], bias, "float32")
        >>> offsets = late.offsets(projected)            # o, [steps, batch, wide]
        >>> ...                                          # a loop: o_t + matmul(x_t, late.matrix())
        >>> late.multiplied(inputs)                      # x, [steps, batch, depth]
    """

    def __init__(self, weights: Sequence[Any], bias: Any, dtype: str):
        row = ops.reshape(bias, (*weights[0].shape[:-2], 1, weights[0].shape[-1]))
        self._rows = ops.concatenate([*weights, row], axis=-2)
        whole = ops.cast(self._rows, dtype)
        self._matrix, self._bias = whole[..., :-1, :], whole[..., -1:, :]
        self._late = keras.backend.backend() != "jax"
        self._inputs: Any = None

    def matrix(self) -> Any:
        """W for a step, to be asked for inside of the loop."""
        return ops.stop_gradient(self._matrix) if self._late else self._matrix

    def offsets(self, offsets: Any) -> Any:
        """What the loop adds to its products, ``[steps, ..., batch, wide]``, with the bias."""
        if not self._late:
            return offsets + self._bias

        @ops.custom_gradient
        def followed(offsets: Any, rows: Any) -> tuple[Any, Any]:
            def gradient(*args: Any, upstream: Any = None) -> tuple[Any, Any]:
                (upstream,) = args or (upstream,)
                wide = _rows(upstream)
                # The bias's is a product too: a sum of so many rows in bfloat16 is slow, and rounds
                # each time.
                inputs = (_rows(self._inputs), ops.ones_like(wide[..., :1]))
                sums = [ops.matmul(ops.swapaxes(x, -1, -2), wide) for x in inputs]
                return upstream, ops.cast(ops.concatenate(sums, axis=-2), rows.dtype)

            return offsets + ops.stop_gradient(self._bias), gradient

        return followed(offsets, self._rows)

    def multiplied(self, inputs: Any) -> None:
        """Is told what the loop has multiplied with W: ``[steps, ..., batch, depth]``."""
        self._inputs = ops.stop_gradient(inputs)


def before(first: Any, states: Any) -> Any:
    """What each step of a loop began with: the first state, then those that the steps gave."""
    return ops.concatenate([first[None], states[:-1]], axis=0)


def _rows(x: Any) -> Any:
    """``[steps, ..., batch, depth]`` → ``[..., steps * batch, depth]``."""
    depth = x.shape[-1]
    if len(x.shape) == 3:
        return ops.reshape(x, (-1, depth))
    return ops.reshape(ops.swapaxes(x, 0, 1), (x.shape[1], -1, depth))
