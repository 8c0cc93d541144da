"""Recurrent cells whose input projection stands apart from the recurrence.

What a cell computes of its inputs alone needs no loop: ``project`` does it for a whole sequence
in one matrix product, and ``advance`` adds what depends on the state, step by step.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.layers.late import LateGradient
from models.serialization import register


class RecurrentCell(keras.layers.Layer):
    """Base of the cells: one cell, or several that run side by side.

    Args:
        units: the size of the state.
        directions: None for one cell; a number for so many cells with weights of their own,
            computed together (a bidirectional encoder runs both directions in one loop).
        extra: the depth of a second input that is known only step by step (input feeding, or a
            context that attention finds).

    Shapes: inputs ``[..., depth]`` → ``project`` → ``[..., blocks * units]``; a state is a tuple
    of tensors ``[batch, units]``, the first of which is the output, with a leading
    ``[directions]`` where there are several.
    """

    state_names: tuple[str, ...] = ()
    blocks: int = 0  # how many times ``units`` wide the kernels are

    def __init__(self, units: int, directions: int | None = None, extra: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self.units, self.directions, self.extra = units, directions, extra

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        self.kernel = self._kernel("kernel", inputs_shape[-1], orthogonal=False)
        self._build_recurrence()
        self.built = True

    def _build_recurrence(self) -> None:
        """Makes all weights but the input's kernel."""
        raise TypeError(f"{type(self).__name__} does not say which weights it has.")

    def _kernel(self, name: str, rows: int | None, orthogonal: bool) -> Any:
        if orthogonal:
            initializer = _blocks(keras.initializers.Orthogonal, self._lead, self.blocks)
        else:
            initializer = _blocks(keras.initializers.GlorotUniform, self._lead, 1)
        shape = (*self._lead, rows, self.blocks * self.units)
        return self.add_weight(name=name, shape=shape, initializer=initializer)

    def _bias(self, name: str, blocks: int, initializer: Any = "zeros") -> Any:
        wide = blocks * self.units
        shape = (*self._lead, 1, wide) if self._lead else (wide,)
        return self.add_weight(name=name, shape=shape, initializer=initializer)

    @property
    def _lead(self) -> tuple[int, ...]:
        return () if self.directions is None else (self.directions,)

    def project(self, inputs: Any, late: LateGradient | None = None) -> Any:
        """The inputs' share of the gates, for any number of steps at once.

        Args:
            inputs: ``[..., depth]``.
            late: what ``late`` gave, if these are all the steps of a loop that is given it too.
        """
        projected = ops.matmul(inputs, self._cast(self.kernel))
        if late is not None:
            return late.offsets(projected)
        return ops.add(projected, self._cast(self.bias))

    def start(self, batch: Any) -> tuple[Any, ...]:
        """A state of zeros for so many rows."""
        zeros = ops.zeros((*self._lead, batch, self.units), dtype=self.compute_dtype)
        return tuple(zeros for _ in self.state_names)

    def late(self, *more: Any) -> LateGradient | None:
        """What lets the recurrent kernel learn behind a loop; None for cells that cannot.

        Args:
            more: kernels of further inputs, which ``advance`` then gets as its ``extra``.
        """
        return None

    def advance(
        self,
        projected: Any,
        state: tuple[Any, ...],
        extra: Any = None,
        keep: Any = None,
        late: LateGradient | None = None,
    ) -> tuple[Any, ...]:
        """One step: the next state.

        Args:
            projected: what ``project`` gave for this step.
            state: the state before it.
            extra: the step's own input ``[batch, extra]``, if the cell has one.
            keep: a dropout mask ``[batch, units]`` for the state where it meets its weights, the
                same at all steps (Gal and Ghahramani 2016, §5), or None.
            late: what ``late`` gave for the loop that this step is one of.
        """
        raise TypeError(f"{type(self).__name__} does not say how it advances.")

    @staticmethod
    def recurrent_inputs(h: Any, extra: Any = None, keep: Any = None) -> Any:
        """What one kernel for state and extra is multiplied with, in one step or in all of them."""
        hidden = h if keep is None else h * keep
        return hidden if extra is None else ops.concatenate([hidden, extra], axis=-1)

    def call(self, inputs: Any, state: tuple[Any, ...], extra: Any = None) -> tuple[Any, ...]:
        return self.advance(self.project(inputs), state, extra)

    def _cast(self, weight: Any) -> Any:
        """A weight in the dtype of computation, also where no ``__call__`` casts it."""
        return ops.cast(weight, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "units": self.units,
            "directions": self.directions,
            "extra": self.extra,
        }


@register
class LSTMCell(RecurrentCell):
    """A long short-term memory cell: the state is (h, c).

    Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000 (bias 1). Arguments
    and shapes as in ``RecurrentCell``.
    """

    state_names = ("h", "c")
    blocks = 4

    def _build_recurrence(self) -> None:
        # One matrix for the state and for the step's own input, so that a step is one product.
        self.recurrent_kernel = self._kernel(
            "recurrent_kernel", self.units + self.extra, orthogonal=True
        )
        self.bias = self._bias("bias", 4, _forget_bias)

    def late(self, *more: Any) -> LateGradient | None:
        return LateGradient([self.recurrent_kernel, *more], self.bias, self.compute_dtype)

    def advance(
        self,
        projected: Any,
        state: tuple[Any, ...],
        extra: Any = None,
        keep: Any = None,
        late: LateGradient | None = None,
    ) -> tuple[Any, ...]:
        h, c = state
        kernel = late.matrix() if late is not None else self._cast(self.recurrent_kernel)
        gates = projected + ops.matmul(self.recurrent_inputs(h, extra, keep), kernel)
        i, f, g, o = ops.split(gates, 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c


@register
class GRUCell(RecurrentCell):
    """A gated recurrent unit: the state is (h,).

    Cho et al. 2014, "Learning Phrase Representations using RNN Encoder–Decoder", §2.3, with the
    reset gate applied after the product, r ∘ (U h + b), so that a step is one product; that is
    ``keras.layers.GRU(reset_after=True)``, whose two biases of the gates are one here. The
    step's own input is never reset. Arguments and shapes as in ``RecurrentCell``.
    """

    state_names = ("h",)
    blocks = 3

    def _build_recurrence(self) -> None:
        self.recurrent_kernel = self._kernel("recurrent_kernel", self.units, orthogonal=True)
        if self.extra:
            self.extra_kernel = self._kernel("extra_kernel", self.extra, orthogonal=False)
        self.bias = self._bias("bias", 3)
        self.reset_bias = self._bias("reset_bias", 1)

    def advance(
        self,
        projected: Any,
        state: tuple[Any, ...],
        extra: Any = None,
        keep: Any = None,
        late: LateGradient | None = None,
    ) -> tuple[Any, ...]:
        (h,) = state
        if extra is not None:
            projected = projected + ops.matmul(extra, self._cast(self.extra_kernel))
        hidden = ops.matmul(h if keep is None else h * keep, self._cast(self.recurrent_kernel))
        z, r, new = ops.split(projected, 3, axis=-1)
        hidden_z, hidden_r, hidden_new = ops.split(hidden, 3, axis=-1)
        z, r = ops.sigmoid(z + hidden_z), ops.sigmoid(r + hidden_r)
        new = ops.tanh(new + r * (hidden_new + self._cast(self.reset_bias)))
        return (z * h + (1.0 - z) * new,)


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


CELLS: dict[str, type[RecurrentCell]] = {"gru": GRUCell, "lstm": LSTMCell}
