"""Layers over a grid of features: where a cell is, and what it sees of the others."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.attention.alignments.base import masked_softmax
from models.serialization import register


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
