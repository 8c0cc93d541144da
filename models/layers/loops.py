"""A loop over time steps with several inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras import ops


def scan_steps(
    step: Callable[[Any, list[Any]], tuple[Any, Any]], start: Any, inputs: Sequence[Any]
) -> tuple[Any, Any]:
    """``keras.ops.scan`` over several inputs at once.

    Keras's own scan takes several only where their number of steps is known when the graph is
    made (on TensorFlow), and ours are not; joined along the last axis they are one.

    Args:
        step: (carry, [input of this step, ...]) → (carry, output), both of one structure.
        start: the first carry.
        inputs: tensors ``[steps, ..., depth]``, alike but for the depth, which must be known.

    Returns:
        The last carry, and the outputs with the steps as the first axis.
    """
    depths = [int(x.shape[-1]) for x in inputs]
    ends = [sum(depths[: i + 1]) for i in range(len(depths) - 1)]
    dtype = inputs[0].dtype
    joined = ops.concatenate([ops.cast(x, dtype) for x in inputs], axis=-1) if ends else inputs[0]

    def one(carry: Any, now: Any) -> tuple[Any, Any]:
        return step(carry, list(ops.split(now, ends, axis=-1)) if ends else [now])

    return ops.scan(one, start, joined)


def rows_first(x: Any) -> Any:
    """``[steps, batch, depth]`` → ``[batch, steps, depth]``."""
    return ops.transpose(x, (1, 0, 2))
