"""Layers over a grid of features: positions and self-attention."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from regard.models.attention.alignments.base import masked_softmax
from regard.models.layers.positions import POSITIONS
from regard.models.serialization import ConfiguredLayer, by_name, constructor_arguments, register
from regard.models.tensors import Tensor

# The positions that are added to the features.
_ADDITIVE = {name: POSITIONS[name] for name in ("sinusoidal", "learned")}


@register
class Coordinates(keras.layers.Layer):
    """Append the row and column of each cell, from -1 to 1, to its features.

    Liu et al. 2018, "An Intriguing Failing of Convolutional Neural Networks and the CoordConv
    Solution", §3. A convolution alone cannot distinguish left from right.

    Shapes: ``[batch, height, width, depth]`` → ``[batch, height, width, depth + 2]``.
    """

    def call(self, grid: Tensor) -> Tensor:
        batch, height, width, _ = ops.shape(grid)
        rows = ops.cast(ops.linspace(-1.0, 1.0, height), grid.dtype)[None, :, None, None]
        columns = ops.cast(ops.linspace(-1.0, 1.0, width), grid.dtype)[None, None, :, None]
        shape = (batch, height, width, 1)
        coordinates = [ops.broadcast_to(x, shape) for x in (rows, columns)]
        return ops.concatenate([grid, *coordinates], axis=-1)


@register
class GridPositions(ConfiguredLayer):
    """Add vectors of the row to the first half of the features and of the column to the second.

    Carion et al. 2020, "End-to-End Object Detection with Transformers", §A.4: sinusoids per
    dimension. ``Coordinates`` are only two of many features, and a Transformer decoder hardly
    learns to use them; these positions have the magnitude of the features.

    Args:
        positions: ``sinusoidal`` or ``learned``.
        size: the height and width of the grid.

    Shapes: ``[batch, height, width, depth]`` → the same.

    Raises:
        ValueError: the positions are unknown.
    """

    def __init__(
        self, positions: str = "sinusoidal", size: Sequence[int] = (16, 16), **kwargs: Any
    ):
        super().__init__(**kwargs)
        size = tuple(size)
        self.settings = constructor_arguments(locals())
        create_positions = by_name("positions", _ADDITIVE, positions)
        self.sides = [
            create_positions(length, dtype=self.dtype_policy, name=name)
            for length, name in zip(size, ("rows", "columns"), strict=True)
        ]

    def build(self, grid_shape: tuple[int | None, ...]) -> None:
        depth = int(grid_shape[-1] or 0)
        self.depths = (depth - depth // 2, depth // 2)
        for side, side_depth in zip(self.sides, self.depths, strict=True):
            side.build((None, None, side_depth))

    def call(self, grid: Tensor) -> Tensor:
        height, width = size = self.settings["size"]
        rows, columns = (
            side(ops.zeros((1, length, d), dtype=self.compute_dtype), ops.arange(length)[None])
            for side, length, d in zip(self.sides, size, self.depths, strict=True)
        )
        rows = ops.broadcast_to(rows[0, :, None], (height, width, self.depths[0]))
        columns = ops.broadcast_to(columns, (height, width, self.depths[1]))
        return grid + ops.concatenate([rows, columns], axis=-1)


@register
class GridSelfAttention(ConfiguredLayer):
    """Self-attention between the cells of a grid, with a residual connection.

    Zhang et al. 2019, "Self-Attention Generative Adversarial Networks", §3: f = W_f x, g = W_g x,
    h = W_h x of smaller depths, β = softmax(fᵀ g), o = W_v Σ β h, and γ o + x, where γ starts at
    0, so that training starts with the convolutions only.

    As in the paper, f and g have an eighth of the depth of x; h has half of it.

    Shapes: ``[batch, height, width, depth]`` → the same.
    """

    def build(self, grid_shape: tuple[int | None, ...]) -> None:
        depth = int(grid_shape[-1] or 0)
        small, half = max(depth // 8, 1), max(depth // 2, 1)
        self.query = self.create_dense("query", depth, small, use_bias=False)
        self.key = self.create_dense("key", depth, small, use_bias=False)
        self.value = self.create_dense("value", depth, half, use_bias=False)
        self.output_layer = self.create_dense("output", half, depth, use_bias=False)
        self.gamma = self.add_weight(name="gamma", shape=(), initializer="zeros")

    def call(self, grid: Tensor) -> Tensor:
        batch, height, width, depth = ops.shape(grid)
        cells = ops.reshape(grid, (batch, height * width, depth))
        scores = ops.matmul(self.query(cells), ops.transpose(self.key(cells), (0, 2, 1)))
        weights = ops.cast(masked_softmax(scores), cells.dtype)
        context = self.output_layer(ops.matmul(weights, self.value(cells)))
        return grid + ops.cast(self.gamma, grid.dtype) * ops.reshape(context, ops.shape(grid))
