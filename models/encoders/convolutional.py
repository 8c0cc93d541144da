"""The encoder of images: a grid of features, cell by cell a position of the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from models.layers.dropouts import Dropout
from models.layers.grid import Coordinates, GridPositions, GridSelfAttention
from models.serialization import register

_BRIGHTEST = 255.0


@register
class ConvolutionalEncoder(keras.layers.Layer):
    """A stack of convolutions, each of which halves the sides of the image.

    Xu et al. 2015, "Show, Attend and Tell", §3.1.1: the features of a lower layer, so that
    the decoder can look at parts of the image; here trained with it. A stage is two 3 x 3
    convolutions, the second with stride 2, each normalised over the depth at every place alone
    (Ba et al. 2016), so that a cell of the grid knows nothing of what is far from it: where a
    model looks is then where it has learnt from. Each cell also knows where it is.

    Args:
        size: height and width of the images; a multiple of 2 for each stage.
        channels: the depth of each stage.
        units: the depth of the memory.
        dropout: the share dropped of the memory, in training.
        self_attention: whether the cells of the grid look at each other (``GridSelfAttention``).
        positions: what of its place is added to each cell, as in ``GridPositions``; or "none".

    Shapes: images ``[batch, height, width, 3]``, numbers from 0 to 255 → a memory, a dictionary
    of ``values`` ``[batch, cells, units]``, row by row from the upper left corner, and ``mask``
    ``[batch, cells]``, which is true everywhere.

    Raises:
        ValueError: the size is no such multiple, or there is no stage.
    """

    # There are no final states.
    final_depth = 0

    def __init__(
        self,
        size: Sequence[int] = (64, 64),
        channels: Sequence[int] = (32, 64, 128),
        units: int = 128,
        dropout: float = 0.0,
        self_attention: bool = False,
        positions: str = "none",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        size, channels = tuple(size), tuple(channels)
        factor = 2 ** len(channels)
        if not channels or any(side % factor or side < factor for side in size):
            raise ValueError(
                f"Images of {' x '.join(map(str, size))} cannot be halved {len(channels)} times; "
                f"there must be a stage, and both sides must be multiples of {factor}."
            )
        self.settings: dict[str, Any] = {
            "size": size,
            "channels": channels,
            "units": units,
            "dropout": dropout,
            "self_attention": self_attention,
            "positions": positions,
        }
        policy = self.dtype_policy
        self.grid = (size[0] // factor, size[1] // factor)
        self.stages = [
            (
                keras.layers.Conv2D(
                    depth,
                    3,
                    strides=stride,
                    padding="same",
                    dtype=policy,
                    name=f"conv_{i}_{stride}",
                ),
                keras.layers.LayerNormalization(dtype=policy, name=f"norm_{i}_{stride}"),
            )
            for i, depth in enumerate(channels)
            for stride in (1, 2)
        ]
        self.look = GridSelfAttention(dtype=policy, name="look") if self_attention else None
        self.coordinates = Coordinates(dtype=policy, name="coordinates")
        self.project = keras.layers.Dense(units, activation="relu", dtype=policy, name="project")
        self.positions = None
        if positions != "none":
            self.positions = GridPositions(positions, self.grid, dtype=policy, name="positions")
        self.dropout = Dropout(dropout, dtype=policy)

    @property
    def depth(self) -> int:
        """The depth of the memory."""
        return int(self.settings["units"])

    @property
    def cells(self) -> int:
        """The positions of the memory."""
        return self.grid[0] * self.grid[1]

    def build(self, images_shape: Any = None) -> None:
        depth = 3 + 2
        for convolution, norm in self.stages:
            convolution.build((None, None, None, depth))
            depth = convolution.filters
            norm.build((None, None, depth))
        if self.look is not None:
            self.look.build((None, *self.grid, depth))
        self.project.build((None, None, depth + 2))
        if self.positions is not None:
            self.positions.build((None, *self.grid, self.depth))
        self.built = True

    def call(self, images: Any, training: bool = False) -> dict[str, Any]:
        # A decoded image does not say its size before it is there; the grid has to know it.
        images = ops.reshape(images, (-1, *self.settings["size"], 3))
        features = ops.cast(images, self.compute_dtype) / _BRIGHTEST - 0.5
        features = self.coordinates(features)
        height, width = self.settings["size"]
        for convolution, norm in self.stages:
            stride = convolution.strides[0]
            height, width = height // stride, width // stride
            # Of no images TensorFlow's convolution on a CPU gives a wrong depth, until the result
            # is truly given another shape.
            places = ops.reshape(convolution(features), (-1, height * width, convolution.filters))
            places = ops.relu(norm(places))
            features = ops.reshape(places, (-1, height, width, convolution.filters))
        if self.look is not None:
            features = self.look(features)
        features = self.project(self.coordinates(features))
        if self.positions is not None:
            features = self.positions(features)
        values = ops.reshape(features, (-1, self.cells, self.depth))
        mask = ops.ones(ops.shape(values)[:2], dtype="bool")
        return {"values": self.dropout(values, training=training), "mask": mask}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
