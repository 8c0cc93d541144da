"""Tensors that get longer with every step of a loop, where the backend lets them."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


def can_grow() -> bool:
    """Whether what a loop carries may change its shape: JAX fixes all shapes beforehand."""
    return keras.backend.backend() != "jax"


def room(like: Any, longest: Any) -> Any:
    """How long a tensor is before the first step: nothing, or ``longest`` if it cannot grow.

    Args:
        like: floats ``[rows, ...]`` that are known at run time alone. A graph infers no length
            from them, or it would take that of the first step for that of all.
        longest: how long it can get.
    """
    if not can_grow():
        return longest
    like = ops.reshape(like, (-1,))
    never = ops.logical_and(like > 0, like < 0)
    return ops.shape(ops.nonzero(never)[0])[0]


def append(steps: Any, new: Any, axis: int, at: Any) -> Any:
    """``steps`` with ``new`` behind them.

    Args:
        steps: what there is so far, or all the room that there is.
        new: one step more.
        axis: along which the steps stand.
        at: where the new one goes, if the room is there already.
    """
    if can_grow():
        return ops.concatenate([steps, new], axis=axis)
    start = [at if i == axis else 0 for i in range(len(steps.shape))]
    return ops.slice_update(steps, start, new)
