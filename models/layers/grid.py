"""Layers over a grid of features: where a cell is, and what it sees of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from models.attention.alignments.base import masked_softmax
from models.layers.positions import POSITIONS
from models.serialization import by_name, register

# Of the positions those that are added to what is read.
_ADDED = {name: POSITIONS[name] for name in ("sinusoidal", "learned")}


@register
class Coordinates(keras.layers.Layer):
    """Puts behind the features of each cell its row and its column, from -1 to 1.

    Liu et al. 2018, "An Intriguing Failing of Convolutional Neural Networks and the CoordConv
    Solution", §3. A convolution alone cannot tell left from right.

    Shapes: ``[batch, height, width, depth]`` → ``[batch, height, width, depth + 2]``.
    """

    def call(self, grid: Any) -> Any:
        batch, height, width, _ = ops.shape(grid)
        rows = ops.cast(ops.linspace(-1.0, 1.0, height), grid.dtype)[None, :, None, None]
        columns = ops.cast(ops.linspace(-1.0, 1.0, width), grid.dtype)[None, None, :, None]
        shape = (batch, height, width, 1)
        places = [ops.broadcast_to(part, shape) for part in (rows, columns)]
        return ops.concatenate([grid, *places], axis=-1)


@register
class GridPositions(keras.layers.Layer):
    """Adds to the first half of a cell's features its row, to the second half its column.

    Carion et al. 2020, "End-to-End Object Detection with Transformers", §A.4: what Vaswani's
    sinusoids say of a place in a row, said of either side. ``Coordinates`` are two numbers among
    many, which a Transformer's decoder hardly finds; these are as large as the features.

    Args:
        positions: "sinusoidal" or "learned".
        size: the height and the width of the grid.

    Shapes: ``[batch, height, width, depth]`` → the same.

    Raises:
        ValueError: there are no such positions; when built, the depth has no two halves.
    """

    def __init__(
        self, positions: str = "sinusoidal", size: Sequence[int] = (16, 16), **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {"positions": positions, "size": tuple(size)}
        kind = by_name("positions", _ADDED, positions)
        self.sides = [
            kind(length, dtype=self.dtype_policy, name=name)
            for length, name in zip(size, ("rows", "columns"), strict=True)
        ]

    def build(self, grid_shape: tuple[int | None, ...]) -> None:
        depth = int(grid_shape[-1] or 0)
        if depth < 2:
            raise ValueError(f"A grid of depth {depth} has no room for rows and columns.")
        self.depths = (depth - depth // 2, depth // 2)
        for side, part in zip(self.sides, self.depths, strict=True):
            side.build((None, None, part))
        self.built = True

    def call(self, grid: Any) -> Any:
        height, width = size = self.settings["size"]
        rows, columns = (
            side(ops.zeros((1, length, part), dtype=self.compute_dtype), ops.arange(length)[None])
            for side, length, part in zip(self.sides, size, self.depths, strict=True)
        )
        rows = ops.broadcast_to(rows[0, :, None], (height, width, self.depths[0]))
        columns = ops.broadcast_to(columns, (height, width, self.depths[1]))
        return grid + ops.concatenate([rows, columns], axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


@register
class GridSelfAttention(keras.layers.Layer):
    """Every cell looks at every other, and adds what it sees.

    Zhang et al. 2019, "Self-Attention Generative Adversarial Networks", §3: f = W_f x, g = W_g x,
    h = W_h x of smaller depths, β = softmax(fᵀ g), o = W_v Σ β h, and γ o + x, where γ begins at
    0, so that a network begins with its convolutions and learns to look further.

    Args:
        reduction: the depth by that of f and g; h has the depth by 2.

    Shapes: ``[batch, height, width, depth]`` → the same.

    Raises:
        ValueError: when built, the depth is less than ``reduction``.
    """

    def __init__(self, reduction: int = 8, **kwargs: Any):
        super().__init__(**kwargs)
        self.reduction = reduction

    def build(self, grid_shape: tuple[int | None, ...]) -> None:
        depth = int(grid_shape[-1] or 0)
        if depth < max(2, self.reduction):
            raise ValueError(
                f"A grid of depth {depth} cannot be reduced by {self.reduction} for attention."
            )
        sizes = {"query": depth // self.reduction, "key": depth // self.reduction}
        for name, size in {**sizes, "value": depth // 2}.items():
            layer = keras.layers.Dense(size, use_bias=False, dtype=self.dtype_policy, name=name)
            layer.build((None, None, depth))
            setattr(self, name, layer)
        self.output_layer = keras.layers.Dense(
            depth, use_bias=False, dtype=self.dtype_policy, name="output"
        )
        self.output_layer.build((None, None, depth // 2))
        self.gamma = self.add_weight(name="gamma", shape=(), initializer="zeros")
        self.built = True

    def call(self, grid: Any) -> Any:
        batch, height, width, depth = ops.shape(grid)
        cells = ops.reshape(grid, (batch, height * width, depth))
        scores = ops.matmul(self.query(cells), ops.transpose(self.key(cells), (0, 2, 1)))
        weights = ops.cast(masked_softmax(scores), cells.dtype)
        seen = self.output_layer(ops.matmul(weights, self.value(cells)))
        return grid + ops.cast(self.gamma, grid.dtype) * ops.reshape(seen, ops.shape(grid))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "reduction": self.reduction}
