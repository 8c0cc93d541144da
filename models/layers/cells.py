"""Recurrent cells whose input projection stands apart from the recurrence.

What a cell computes of its inputs alone needs no loop: ``project`` does it for a whole sequence
in one matrix product, and ``advance`` adds what depends on the state, step by step.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.serialization import register


@register
class LSTMCell(keras.layers.Layer):
    """A long short-term memory cell, or several that run side by side.

    Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000 (bias 1).

    Args:
        units: the size of the state.
        directions: None for one cell; a number for so many cells with weights of their own,
            computed together (a bidirectional encoder runs both directions in one loop).
        extra: the depth of a second input that is known only step by step (input feeding).

    Shapes: inputs ``[..., depth]`` → ``project`` → ``[..., 4 units]``; a state is a tuple
    (h, c), each ``[batch, units]``, with a leading ``[directions]`` where there are several.
    """

    def __init__(self, units: int, directions: int | None = None, extra: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self.units, self.directions, self.extra = units, directions, extra

    @property
    def state_names(self) -> tuple[str, ...]:
        """What the tensors of a state are, in order."""
        return ("h", "c")

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        lead = () if self.directions is None else (self.directions,)
        wide = 4 * self.units
        self.kernel = self.add_weight(
            name="kernel",
            shape=(*lead, inputs_shape[-1], wide),
            initializer=_blocks(keras.initializers.GlorotUniform, lead, 1),
        )
        # One matrix for the state and for the step's own input, so that a step is one product.
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(*lead, self.units + self.extra, wide),
            initializer=_blocks(keras.initializers.Orthogonal, lead, 4),
        )
        self.bias = self.add_weight(
            name="bias",
            shape=(*lead, wide) if not lead else (*lead, 1, wide),
            initializer=_forget_bias,
        )
        self.built = True

    def project(self, inputs: Any) -> Any:
        """The inputs' share of the gates, for any number of steps at once."""
        return ops.add(ops.matmul(inputs, self.kernel), self.bias)

    def start(self, batch: Any) -> tuple[Any, ...]:
        """A state of zeros for so many rows."""
        lead = () if self.directions is None else (self.directions,)
        zeros = ops.zeros((*lead, batch, self.units), dtype=self.compute_dtype)
        return (zeros, zeros)

    def advance(self, projected: Any, state: tuple[Any, ...], extra: Any = None) -> tuple[Any, ...]:
        """One step: the next state from the projected input, the state and the extra input."""
        h, c = state
        hidden = h if extra is None else ops.concatenate([h, extra], axis=-1)
        gates = projected + ops.matmul(hidden, self.recurrent_kernel)
        i, f, g, o = ops.split(gates, 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c

    def call(self, inputs: Any, state: tuple[Any, ...], extra: Any = None) -> tuple[Any, ...]:
        return self.advance(self.project(inputs), state, extra)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "units": self.units,
            "directions": self.directions,
            "extra": self.extra,
        }


def _blocks(initializer: type, lead: tuple[int, ...], gates: int) -> Any:
    """Initialises each direction, and each gate of orthogonal kernels, on its own."""

    def initialize(shape: tuple[int, ...], dtype: Any = None) -> Any:
        rows, wide = shape[-2:]
        block = [
            ops.concatenate(
                [initializer()((rows, wide // gates), dtype=dtype) for _ in range(gates)], axis=-1
            )
            for _ in range(lead[0] if lead else 1)
        ]
        return ops.stack(block) if lead else block[0]

    return initialize


def _forget_bias(shape: tuple[int, ...], dtype: Any = None) -> Any:
    quarter = (*shape[:-1], shape[-1] // 4)
    parts = [ops.zeros(quarter, dtype=dtype) for _ in range(4)]
    parts[1] = ops.ones(quarter, dtype=dtype)
    return ops.concatenate(parts, axis=-1)


CELLS: dict[str, type[LSTMCell]] = {"lstm": LSTMCell}
