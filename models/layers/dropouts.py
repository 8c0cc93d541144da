"""Dropout, of a sequence also the same at all of its steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
from keras import ops

from models.serialization import register

DROPOUT_TYPES = ("plain", "variational")
_CHANCES = 2**16


@register
class Dropout(keras.layers.Dropout):
    """Keras's dropout with two decisions a random number, which halves what it costs.

    Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from Overfitting".
    The rate is the nearest multiple of 1/65536, and what is kept is scaled by just that.
    """

    def call(self, inputs: Any, training: bool = False) -> Any:
        if not training or not self.rate:
            return inputs
        shape = ops.shape(inputs)
        if self.noise_shape is not None:
            asked = zip(self.noise_shape, shape, strict=True)
            shape = tuple(own if wanted is None else wanted for wanted, own in asked)
        dropped = min(round(self.rate * _CHANCES), _CHANCES - 1)
        kept = ops.cast(self._draw(shape) >= dropped, inputs.dtype)
        return inputs * (kept * (_CHANCES / (_CHANCES - dropped)))

    def _draw(self, shape: tuple[Any, ...]) -> Any:
        """Integers below ``_CHANCES`` in the shape."""
        count = 1
        for side in shape:
            count = count * side
        pairs = keras.random.randint(
            ((count + 1) // 2, 1), -(2**31), 2**31 - 1, dtype="int32", seed=self.seed_generator
        )
        return ops.reshape(ops.reshape(ops.view(pairs, "uint16"), (-1,))[:count], shape)


def sequence_dropout(rate: float, kind: str, **kwargs: Any) -> Dropout:
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
    return Dropout(rate, noise_shape=shape, **kwargs)


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
