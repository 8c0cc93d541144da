"""What is dropped of a sequence: new numbers at every step, or the same at all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
from keras import ops

DROPOUT_TYPES = ("plain", "variational")


def sequence_dropout(rate: float, kind: str, **kwargs: Any) -> keras.layers.Dropout:
    """A dropout layer for ``[batch, length, depth]``.

    Gal and Ghahramani 2016, "A Theoretically Grounded Application of Dropout in Recurrent Neural
    Networks", §4.2, "variational": what is dropped at one step of a sequence is dropped at all.

    Args:
        rate: the share of the numbers set to zero in training.
        kind: one of ``DROPOUT_TYPES``.
        kwargs: further arguments of the layer.

    Raises:
        ValueError: there is no such kind.
    """
    if kind not in DROPOUT_TYPES:
        raise ValueError(f"Unknown dropout_type {kind!r}. Choices: {', '.join(DROPOUT_TYPES)}.")
    shape = (None, 1, None) if kind == "variational" else None
    return keras.layers.Dropout(rate, noise_shape=shape, **kwargs)


def drawn(dropout: keras.layers.Dropout, shape: tuple[Any, ...], dtype: Any) -> Any:
    """A mask for training: zeros, and ones scaled so that the mean stays 1."""
    return dropout(ops.ones(shape, dtype=dtype), training=True)


class Drops(NamedTuple):
    """The dropout masks of a sequence, all drawn outside of the loop.

    Attributes:
        scanned: a mask ``[target, batch, units]`` above each layer but the last, new at every
            step.
        fixed: the same as ``[batch, units]``, for all steps alike.
        states: a mask ``[batch, units]`` for each layer's state, for all steps alike.
    """

    scanned: tuple[Any, ...] = ()
    fixed: tuple[Any, ...] = ()
    states: tuple[Any, ...] = ()


NO_DROPS = Drops()
