"""Loops over time steps, tensors that grow inside them, and windows of steps."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from regard.models.tensors import Tensor


def scan_steps(
    step: Callable[[Any, list[Tensor]], Any], start: Any, inputs: Sequence[Tensor]
) -> tuple[Any, Any]:
    """Run a step for each step of the inputs, from the carry of the step before.

    This is ``carries = []; for now in inputs: carry = step(carry, now); carries.append(carry)`` as
    ``keras.ops.scan``. On TensorFlow, the outputs of Keras's scan must have the shapes and types of
    the carry. So the outputs are the carries, and what a step computes only for the result is a
    part of its carry that the next step ignores. In ``start`` that part is zeros.

    Args:
        step: (carry, [input of this step, ...]) → carry, with a fixed structure.
        start: the first carry.
        inputs: tensors ``[steps, ..., depth]`` that differ only in the depth, which must be known.

    Returns:
        The last carry, and the carries of all steps, with the steps as first axis.
    """
    # Keras's scan on TensorFlow accepts several inputs only if their number of steps is known when
    # the graph is built, so they are concatenated along the last axis.
    depths = [int(x.shape[-1]) for x in inputs]
    ends = [sum(depths[: i + 1]) for i in range(len(depths) - 1)]
    dtype = inputs[0].dtype
    joined = ops.concatenate([ops.cast(x, dtype) for x in inputs], axis=-1) if ends else inputs[0]

    def split_step(carry: Any, now: Tensor) -> tuple[Any, Any]:
        carry = step(carry, list(ops.split(now, ends, axis=-1)) if ends else [now])
        return carry, carry

    return ops.scan(split_step, start, joined)


def batch_first(x: Tensor) -> Tensor:
    """Transpose ``[steps, batch, depth]`` to ``[batch, steps, depth]``."""
    return ops.transpose(x, (1, 0, 2))


def windows(steps: Tensor, size: int) -> list[Tensor]:
    """Return the first, the second ... step of every window of ``size`` neighbouring steps.

    Args:
        steps: ``[batch, length, ...]``.
        size: the number of steps of a window.

    Returns:
        ``size`` tensors ``[batch, length - size + 1, ...]``.
    """
    count = ops.shape(steps)[1] - size + 1
    return [steps[:, i : i + count] for i in range(size)]


def can_grow() -> bool:
    """Return whether a tensor may change its shape in a loop, which JAX does not allow."""
    return keras.backend.backend() != "jax"


def initial_length(like: Tensor, max_length: Tensor) -> Tensor:
    """Return the length of a growing tensor before the first step: 0, or ``max_length`` on JAX.

    Args:
        like: floats ``[rows, ...]`` whose values are known at run time only, so that a graph does
            not infer a static length from the first step.
        max_length: the maximum length.
    """
    if not can_grow():
        return max_length
    like = ops.reshape(like, (-1,))
    never = ops.logical_and(like > 0, like < 0)
    return ops.shape(ops.nonzero(never)[0])[0]


def append_step(steps: Tensor, new: Tensor, axis: int, position: Tensor) -> Tensor:
    """Append one step to a tensor that grows in a loop.

    Args:
        steps: the steps so far; on JAX a tensor of the maximum length.
        new: one more step.
        axis: the axis of the steps.
        position: the index of the new step, used on JAX.
    """
    if can_grow():
        return ops.concatenate([steps, new], axis=axis)
    start = [position if i == axis else 0 for i in range(len(steps.shape))]
    return ops.slice_update(steps, start, new)


def transpose_as_int(x: Tensor, axes: tuple[int, ...]) -> Any:
    """Transpose floats as integers of the same size; has no gradient.

    For the small tensors of one step, oneDNN's transposition of floats takes 20 times as long.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    integer = "int32" if dtype == "float32" else "int16"
    return ops.view(ops.transpose(ops.view(x, integer), axes), dtype)
