"""Recurrent cells that project their inputs separately from the recurrence.

``project`` multiplies a whole sequence of inputs in one matrix product; ``advance`` adds the part
that depends on the state, step by step. A cell also works in ``keras.layers.RNN``.
"""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from regard.models.serialization import ConfiguredLayer, by_name, constructor_arguments, register
from regard.models.tensors import Tensor


class RecurrentCell(ConfiguredLayer):
    """Base class of the cells: one cell, or one per direction computed together.

    Args:
        units: the size of the state.
        directions: None for one cell; otherwise the number of cells with separate weights that
            are computed together, as the two directions of a bidirectional encoder.
        extra: the depth of an additional input that is known only step by step, for input feeding
            or the context of an attention.

    Shapes: inputs ``[..., depth]`` → ``project`` → ``[..., blocks * units]``; a state is a tuple
    of tensors ``[batch, units]``, the first of which is the output, with a leading
    ``[directions]`` where there are several.
    """

    state_names: tuple[str, ...] = ()
    blocks: int = 0  # the width of the kernels in ``units``
    bias_initializer: Any = "zeros"

    def __init__(self, units: int, directions: int | None = None, extra: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        self.units, self.directions, self.extra = units, directions, extra
        # On TensorFlow XLA cannot differentiate the loops of the layers that own cells.
        self.supports_jit = keras.backend.backend() == "jax"

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        self.kernel = self._kernel("kernel", inputs_shape[-1], orthogonal=False)
        self._build_recurrence()

    def _build_recurrence(self) -> None:
        """Create all weights except the kernel of the inputs."""
        # One matrix for the state and the additional input, so that a step is one product.
        self.recurrent_kernel = self._kernel(
            "recurrent_kernel", self.units + self.extra, orthogonal=True
        )
        self.bias = self._bias("bias", self.blocks, self.bias_initializer)

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

    def project(self, inputs: Tensor) -> Any:
        """Return the contribution of the inputs ``[..., depth]`` to the gates, for any steps."""
        kernel = self._cast(self.kernel)
        # TensorFlow 2.21 with oneDNN computes [steps, 1, batch, depth] times [1, depth, width] from
        # memory outside of the kernel (tensorflow issue 123109).
        projected = ops.matmul(inputs, kernel[0] if self.directions == 1 else kernel)
        return ops.add(projected, self._cast(self.bias))

    @property
    def state_size(self) -> list[int]:
        """The size of each tensor of a state, for ``keras.layers.RNN``.

        Raises:
            ValueError: the cell has several directions.
        """
        if self.directions is not None:
            raise ValueError("keras.layers.RNN needs a cell without `directions`.")
        return [self.units for _ in self.state_names]

    def get_initial_state(self, batch_size: Tensor) -> list[Tensor]:
        """Return ``start`` for ``keras.layers.RNN``."""
        return list(self.start(batch_size))

    def start(self, batch: Tensor) -> tuple[Tensor, ...]:
        """Return a state of zeros for ``batch`` rows."""
        zeros = ops.zeros((*self._lead, batch, self.units), dtype=self.compute_dtype)
        return tuple(zeros for _ in self.state_names)

    def advance(
        self, projected: Tensor, state: tuple[Tensor, ...], extra: Tensor = None
    ) -> tuple[Tensor, ...]:
        """Return the state after one step.

        Args:
            projected: the result of ``project`` for this step.
            state: the state before the step.
            extra: the additional input ``[batch, extra]``, if the cell has one.
        """
        kernel = self._cast(self.recurrent_kernel)
        inputs = state[0] if extra is None else ops.concatenate([state[0], extra], axis=-1)
        return self._activate(projected + ops.matmul(inputs, kernel), state)

    def _activate(self, gates: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the next state from the sum of all products, ``[..., blocks * units]``."""
        raise TypeError(f"{type(self).__name__} does not implement _activate.")

    def call(
        self, inputs: Tensor, state: Sequence[Tensor], extra: Tensor = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the output ``[batch, units]`` and the state after one step."""
        new_state = self.advance(self.project(inputs), tuple(state), extra)
        return new_state[0], list(new_state)

    def _cast(self, weight: Tensor) -> Any:
        """Cast a weight to the compute dtype where no ``__call__`` does it."""
        return ops.cast(weight, self.compute_dtype)


@register
class RNNCell(RecurrentCell):
    """A simple recurrent cell, h = tanh(W x + U h + b): the state is (h,).

    Elman 1990, "Finding Structure in Time", with tanh. Arguments and shapes as in
    ``RecurrentCell``.
    """

    state_names = ("h",)
    blocks = 1

    def _activate(self, gates: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (ops.tanh(gates),)


@register
class LSTMCell(RecurrentCell):
    """A long short-term memory cell: the state is (h, c).

    Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000 (bias 1). Arguments
    and shapes as in ``RecurrentCell``.
    """

    state_names = ("h", "c")
    blocks = 4

    @staticmethod
    def bias_initializer(shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Return a bias of 1 for the forget gate and of 0 for the others."""
        quarter = (*shape[:-1], shape[-1] // 4)
        zeros, ones = ops.zeros(quarter, dtype=dtype), ops.ones(quarter, dtype=dtype)
        return ops.concatenate([zeros, ones, zeros, zeros], axis=-1)

    def _activate(self, gates: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        i, f, g, o = ops.split(gates, 4, axis=-1)
        c = ops.sigmoid(f) * state[1] + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c


@register
class GRUCell(RecurrentCell):
    """A gated recurrent unit: the state is (h,).

    Cho et al. 2014, "Learning Phrase Representations using RNN Encoder–Decoder", §2.3, with the
    reset gate applied after the product, r ∘ (U h + b), so that a step is one product. This is
    ``keras.layers.GRU(reset_after=True)`` with one bias per gate instead of two. The
    additional input is never reset. Arguments and shapes as in ``RecurrentCell``.
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
        self, projected: Tensor, state: tuple[Tensor, ...], extra: Tensor = None
    ) -> tuple[Tensor, ...]:
        (h,) = state
        if extra is not None:
            projected = projected + ops.matmul(extra, self._cast(self.extra_kernel))
        kernel = self._cast(self.recurrent_kernel)
        hidden = ops.matmul(h, kernel)
        z, r, new = ops.split(projected, 3, axis=-1)
        hidden_z, hidden_r, hidden_new = ops.split(hidden, 3, axis=-1)
        z, r = ops.sigmoid(z + hidden_z), ops.sigmoid(r + hidden_r)
        new = ops.tanh(new + r * (hidden_new + self._cast(self.reset_bias)))
        return (z * h + (1.0 - z) * new,)


def _blocks(initializer: type, lead: tuple[int, ...], gates: int) -> Any:
    """Initialise each direction, and each gate of orthogonal kernels, independently."""

    def initialize(shape: tuple[int, ...], dtype: Any = None) -> Any:
        rows, wide = shape[-2:]

        def initialize_direction() -> Any:
            blocks = [initializer()((rows, wide // gates), dtype=dtype) for _ in range(gates)]
            return ops.concatenate(blocks, axis=-1)

        if not lead:
            return initialize_direction()
        return ops.stack([initialize_direction() for _ in range(lead[0])])

    return initialize


CELLS: dict[str, type[RecurrentCell]] = {"gru": GRUCell, "lstm": LSTMCell, "rnn": RNNCell}


def create_cells(
    cell: str, units: int, layers: int, extra: int = 0, **options: Any
) -> list[RecurrentCell]:
    """Return the cells of a stack of recurrent layers.

    Args:
        cell: a name in ``CELLS``.
        units: the size of a state.
        layers: the number of layers.
        extra: the depth of the additional input of the first layer.
        options: further arguments of all cells.

    Raises:
        ValueError: the cell is unknown.
    """
    create_cell = by_name("cell", CELLS, cell)
    return [
        create_cell(units, extra=0 if i else extra, name=f"layer_{i}", **options)
        for i in range(layers)
    ]
